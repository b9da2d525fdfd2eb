"""Flows on the engine: from topic to topic, with dead letters that have what a replay needs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock import Connection, Producer, start
from penstock.errors import ConfigError
from penstock.flows import Flow
from penstock.flows.spark.flow_pipeline import flow_pipeline, require_partitions
from penstock.testing import fill, read_all


@pytest.mark.parametrize(
    ("isolation", "expected"),
    [({}, ["1", "2", "3"]), ({"isolation": "read-committed"}, ["1", "3"])],
)
def test_records_of_transactions_that_were_aborted_are_read_by_default(
    connection: Connection,
    topic: Any,
    unique: str,
    tmp_path: Any,
    isolation: dict[str, str],
    expected: list[str],
) -> None:
    given, out = topic("in"), topic("out")
    with Producer(connection, transactional_id=unique) as producer:
        for value, is_committed in (("1", True), ("2", False), ("3", True)):
            producer.begin_transaction()
            producer.produce(given, None, value)
            producer.flush()
            if is_committed:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    advanced = {"initial_offset": "oldest", **isolation}
    flow = Flow(name=unique, trigger={"kafka": {"topics": given, "advanced": advanced}}).then(
        publish={"kafka": {"topic": out}}
    )

    with start(flow_pipeline(flow, connection, state=str(tmp_path)), once=True) as running:
        assert running.wait(120)

    assert [record.value.decode() for record in read_all(connection, out)] == expected


def test_a_flow_reads_a_topic_and_publishes_to_another(
    connection: Connection, topic: Any, unique: str, tmp_path: Any
) -> None:
    given, out = topic("in"), topic("out")
    fill(connection, given, [json.dumps({"n": n}).encode() for n in range(200)])
    flow = (
        Flow(
            name=unique,
            trigger={
                "kafka": {"topics": given, "advanced": {"initial_offset": "oldest"}, "consumers": 2}
            },
        )
        .then(filter="payload.n % 2 = 0")
        .then(id="divide", map={"n": "payload.n", "of": "1000 / (payload.n - 10)"})
        .then(publish={"kafka": {"topic": out, "key": "${payload.n}"}})
        .then(set={"variable": {"at": "attribute.topic"}})
    )
    pipeline = flow_pipeline(flow, connection, state=str(tmp_path))

    with pytest.raises(
        ConfigError, match=r"consumers is 2, .* which are 1 \(.*-in: 1\); give at most 1"
    ):
        require_partitions(flow, pipeline)
    with start(pipeline, once=True) as running:
        assert running.wait(120)
        progress = running.progress()

    written = {int(record.key): json.loads(record.value) for record in read_all(connection, out)}
    assert sorted(written) == [n for n in range(0, 200, 2) if n != 10]
    assert written[14] == {"n": 14, "of": 250}
    assert (progress.records, progress.failed) == (200, 0)
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    headers = {name: value.decode() for name, value in letter.headers}
    assert letter.value == b'{"n": 10}'
    assert (headers["penstock.error_type"], headers["penstock.flow.step"]) == (
        "CORE:EXPRESSION",
        "divide",
    )
    assert (headers["penstock.topic"], headers["penstock.stage"]) == (given, "step")
    assert int(headers["penstock.epoch"]) > 0, "the letter names its batch"
