"""Every kind of record that Kafka holds, through a pipeline: gaps, aborted, large and empty ones."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from penstock import Admin, Connection, Producer, memory_table, start
from penstock.testing import eventually, fill, read_all

MB = 1024 * 1024
MOMENT = datetime(2024, 5, 1, 12, 0, 0, 123000, tzinfo=timezone.utc)


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


def table_of(pipeline: Any, unique: str, source: Any, decode: Any) -> list[dict[str, Any]]:
    """Run the records through a pipeline and return the rows in the order of their offsets."""
    progress = run_once(pipeline(source={"kafka": source}, decode=decode, sink={"memory": unique}))
    assert (progress.failed, progress.lost) == (0, 0)
    rows = memory_table(unique).to_arrow().to_pylist()
    offset = "offset" if "offset" in rows[0] else "kafka_offset"
    return sorted(rows, key=lambda row: row[offset])


def parse(value: str | None, key: str | None) -> dict[str, Any]:
    return {"size": None if value is None else len(value), "name": key}


def test_a_compacted_topic_has_gaps_and_lacks_nothing(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    compacted = {
        "cleanup.policy": "compact",
        "segment.ms": 1,
        "min.cleanable.dirty.ratio": 0.001,
        "max.compaction.lag.ms": 1,
        "delete.retention.ms": 0,
    }
    with Admin(connection) as admin:
        admin.create_topic(topic(), 1, config=compacted)
    for lot in range(3):
        values = [{"n": lot * 100 + n} for n in range(20)]
        fill(connection, topic(), values, key=lambda n: b"k%d" % n)
    # The last segment is never compacted; all before it holds each key once at most.
    eventually(lambda: len(read_all(connection, topic())) < 60, timeout=120)

    progress = run_once(
        pipeline(
            source={"kafka": {"topics": topic(), "max_records_per_batch": 7}},
            decode={"json": {"schema": "n int", "metadata": ["key"]}},
            sink={"memory": unique},
        )
    )

    newest = {row["kafka_key"]: row["n"] for row in memory_table(unique).to_arrow().to_pylist()}
    assert newest == {b"k%d" % n: 200 + n for n in range(20)}
    assert (progress.records, progress.lost, progress.failed) == (60, 0, 0)
    assert progress.rows < 60


def test_aborted_records_are_not_read_and_those_of_open_transactions_are_waited_for(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    definition = pipeline(
        source={"kafka": topic()}, decode={"json": {"schema": "n int"}}, sink={"memory": unique}
    )
    fill(connection, topic(), [{"n": 0}])
    with Producer(connection, transactional_id=unique) as producer:
        with producer.transaction():
            producer.produce(topic(), None, '{"n": 1}')
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.produce(topic(), None, '{"n": 2}')
            producer.flush()
            raise ZeroDivisionError
        with producer.transaction():
            producer.produce(topic(), None, '{"n": 3}')
            producer.flush()
            first = run_once(definition)
            assert sorted(memory_table(unique).to_pandas()["n"]) == [0, 1]
    second = run_once(definition)
    assert sorted(memory_table(unique).to_pandas()["n"]) == [0, 1, 3]
    assert (first.lost, second.lost, first.rows, second.rows) == (0, 0, 2, 1)
    with Admin(connection) as admin:
        assert admin.committed(unique) == admin.latest([(topic(), 0)])


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("decode", "size"),
    [
        ("raw", lambda row: len(row["value"])),
        (
            {"json": {"schema": "text string", "metadata": ["offset"]}},
            lambda row: len(row["text"]) + 11,
        ),
        (
            {
                "python": {"function": parse, "schema": "size bigint, name string"}
                | {"metadata": ["offset"]}
            },
            lambda row: row["size"],
        ),
    ],
    ids=["raw", "json", "python"],
)
def test_records_of_several_megabytes(
    connection: Connection, topic: Any, pipeline: Any, unique: str, decode: Any, size: Any
) -> None:
    sizes = [9 * MB, 100, 5 * MB, 12 * MB - 1000, 3, 7 * MB]
    with Admin(connection) as admin:
        admin.create_topic(topic(), 1, config={"max.message.bytes": 12 * MB})
    with Producer(connection, **{"message.max.bytes": 12 * MB}) as producer:
        for length in sizes:
            producer.produce(topic(), None, '{"text":"' + "x" * max(0, length - 11) + '"}')

    rows = table_of(pipeline, unique, {"topics": topic()}, decode)

    assert [size(row) for row in rows] == [max(length, 11) for length in sizes]


@pytest.fixture
def mixed(connection: Connection, topic: Any) -> str:
    """Keys and values, each there, empty and missing; headers of the same name."""
    headers = [("a", b"1"), ("b", b""), ("a", b"2"), ("c", None), ("a", b"1")]
    fill(connection, topic(), [])
    with Producer(connection) as producer:
        producer.produce(topic(), "k", "vvv", headers=headers)
        producer.produce(topic(), None, "vv")
        producer.produce(topic(), "k", None)
        producer.produce(topic(), None, None, headers=[("z", b"\xff\x00")])
        producer.produce(topic(), "", "")
    return str(topic())


def test_null_keys_and_values_and_repeated_headers_are_kept_as_they_are(
    mixed: str, pipeline: Any, unique: str
) -> None:
    rows = table_of(pipeline, unique, {"topics": mixed, "headers": True}, "raw")
    assert [(row["key"], row["value"]) for row in rows] == [
        (b"k", b"vvv"), (None, b"vv"), (b"k", None), (None, None), (b"", b""),
    ]  # fmt: skip
    found = [[(h["key"], h["value"]) for h in row["headers"] or []] for row in rows]
    assert found[0] == [("a", b"1"), ("b", b""), ("a", b"2"), ("c", None), ("a", b"1")]
    assert found[1:] == [[], [], [("z", b"\xff\x00")], []]


def test_a_parser_sees_missing_keys_and_tombstones_are_rows_with_their_headers(
    mixed: str, pipeline: Any, unique: str
) -> None:
    kept = ["offset", "key", "headers", "tombstone"]
    decode = {"python": {"function": parse, "schema": "size bigint, name string", "metadata": kept}}
    rows = table_of(pipeline, unique, {"topics": mixed, "headers": True}, decode)
    assert [(r["size"], r["name"], r["kafka_key"], r["kafka_tombstone"]) for r in rows] == [
        (3, "k", b"k", False), (2, None, None, False), (None, None, b"k", True),
        (None, None, None, True), (0, "", b"", False),
    ]  # fmt: skip
    assert [h["value"] for h in rows[0]["kafka_headers"] if h["key"] == "a"] == [b"1", b"2", b"1"]


def test_a_record_without_a_value_is_a_dead_letter_with_all_its_headers_in_order(
    mixed: str, connection: Connection, pipeline: Any, unique: str
) -> None:
    definition = pipeline(
        source={"kafka": mixed}, decode={"json": {"schema": "n int"}}, sink={"memory": unique}
    )
    assert run_once(definition).failed == 5
    letters = read_all(connection, f"{unique}.dead-letters")
    found = {
        (r.key, r.value): [h for h in r.headers if not h[0].startswith("penstock.")]
        for r in letters
    }
    assert found == {
        (b"k", b"vvv"): [("a", b"1"), ("b", b""), ("a", b"2"), ("c", None), ("a", b"1")],
        (None, b"vv"): [],
        (b"k", None): [],
        (None, None): [("z", b"\xff\x00")],
        (b"", b""): [],
    }


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize(
    "decode", ["raw", {"json": {"schema": "n int", "metadata": ["timestamp", "offset"]}}]
)
def test_timestamps_of_both_types(
    connection: Connection, topic: Any, pipeline: Any, unique: str, kind: str, decode: Any
) -> None:
    with Admin(connection) as admin:
        admin.create_topic(topic(), 1, config={"message.timestamp.type": kind})
    with Producer(connection) as producer:
        producer.produce(topic(), None, '{"n": 1}', timestamp=MOMENT)
    (record,) = read_all(connection, topic())

    (row,) = table_of(pipeline, unique, {"topics": topic()}, decode)

    found = row.get("timestamp") or row.get("kafka_timestamp")
    utc = found.astimezone(timezone.utc) if found.tzinfo else found.replace(tzinfo=timezone.utc)
    assert round(utc.timestamp() * 1000) == record.timestamp
    assert (utc == MOMENT) is (kind == "CreateTime")
