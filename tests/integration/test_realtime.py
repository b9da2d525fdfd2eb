"""Real-time mode: from topic to topic, each record as it comes; the group follows."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Admin, Connection, State, start
from penstock.errors import ConfigError, DefinitionError
from penstock.testing import eventually, fill, read_all

UPPER = {"sql": "SELECT key, upper(CAST(value AS STRING)) AS value FROM rows WHERE value <> 'no'"}


def in_real_time(pipeline: Any, topic: Any, *steps: Any, **options: Any) -> Any:
    given = {
        "source": {"kafka": topic()},
        "steps": list(steps or [UPPER]),
        "sink": {"kafka": {"topic": topic("out"), "key": "key", "value": "value"}},
        "latency": "realtime",
    }
    return pipeline(**(given | options))


def values(connection: Connection, topic: str) -> list[bytes]:
    return sorted(record.value for record in read_all(connection, topic))


def test_records_come_through_and_the_group_follows_over_a_restart(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    definition = in_real_time(pipeline, topic)
    fill(connection, topic(), ["a", "b", "no"], key=lambda n: b"k%d" % n)
    with Admin(connection) as admin:
        with start(definition) as running:
            eventually(lambda: values(connection, topic("out")) == [b"A", b"B"], 120)
            eventually(lambda: admin.committed(definition.group_id) == {(topic(), 0): 3}, 60)
            assert running.progress().state is State.RUNNING
            assert running.progress().records == 3
        fill(connection, topic(), ["c"])
        with start(definition) as running:
            eventually(lambda: len(values(connection, topic("out"))) == 3, 120)
            eventually(lambda: running.progress().total_lag == 0, 60)
        assert values(connection, topic("out")) == [b"A", b"B", b"C"]
        assert {record.key for record in read_all(connection, topic("out"))} == {b"k0", b"k1", None}
        assert admin.committed(definition.group_id) == {(topic(), 0): 4}


def test_a_run_to_the_end_takes_batches(connection: Connection, topic: Any, pipeline: Any) -> None:
    fill(connection, topic(), ["a", "b"])
    with start(in_real_time(pipeline, topic), once=True) as running:
        assert running.wait(120)
    assert values(connection, topic("out")) == [b"A", b"B"]


def test_partitions_without_a_slot_are_refused(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    with Admin(connection) as admin:
        admin.create_topic(topic(), 64)
    with pytest.raises(
        ConfigError, match=r"each of the 64 partitions .* needs a task slot"
    ) as refused:
        start(in_real_time(pipeline, topic))
    assert "local[64]" in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decode": {"json": {"schema": "a int"}}}, r"decode (json) prevents"),
        ({"sink": {"files": "out"}}, "sink (files) prevents real-time mode"),
        ({"delivery": "exactly-once"}, "'delivery' is exactly-once"),
        (
            {"steps": [UPPER, {"sql": "SELECT count(*) FROM rows"}]},
            "steps[1] (sql) prevents real-time mode",
        ),
        (
            {"steps": [{"python": {"function": "math:sqrt"}}]},
            "steps[0] (python) prevents real-time mode",
        ),
        (
            {"steps": [{"deduplicate": {"by": "key", "time": "timestamp", "within": "1m"}}]},
            "steps[0] (deduplicate) prevents real-time mode: it keeps state",
        ),
        (
            {"source": {"kafka": {"topics": "t", "on_data_loss": "skip"}}},
            "source (kafka) prevents real-time mode",
        ),
    ],
)
def test_what_prevents_real_time_mode_is_named_or_batches_are_used_on_request(
    pipeline: Any, topic: Any, options: Any, said: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        in_real_time(pipeline, topic, **options)
    assert said in str(refused.value)
    fallen = in_real_time(pipeline, topic, **options, latency="realtime-or-batch")
    assert not fallen.in_real_time
