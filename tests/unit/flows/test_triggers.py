"""Triggers as sources of pipelines: when a timer is due, and what the attributes of messages are."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.flows.flow_cases import payloads

from penstock.errors import DefinitionError, TransientError
from penstock.flows import CompiledFlow, Flow
from penstock.flows.spark import timer_import
from penstock.flows.spark.flow_pipeline import flow_pipeline
from penstock.flows.spark.record_batches import messages_of
from penstock.flows.spark.tick_times import TickTimes
from penstock.flows.spark.timer_import import TickReader, TimerPart
from penstock.flows.spark.trigger_sources import trigger_source
from penstock.flows.testing import canned_systems
from penstock.pipeline.importing import Portion, key_of

BERLIN = "Europe/Berlin"


def at(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


def texts(times: Any) -> list[str]:
    return [datetime.fromtimestamp(t / 1000, timezone.utc).strftime("%d %H:%M") for t in times]


@pytest.mark.parametrize(
    ("cron", "zone", "first", "last", "due"),
    [
        ("0 8 * * mon-fri", "UTC", "2024-05-03T08:00", "2024-05-06T09:00", ["06 08:00"]),
        # At the end of summer time an hour is there twice, at its beginning one is not there at all.
        ("30 2 * * *", BERLIN, "2024-10-26T00:30", "2024-10-28T02:00", ["27 00:30", "28 01:30"]),
        ("30 2 * * *", BERLIN, "2024-03-30T01:30", "2024-04-01T00:30", ["31 01:30", "01 00:30"]),
        ("30 * * * *", BERLIN, "2024-10-26T23:30", "2024-10-27T02:00", ["27 00:30", "27 01:30"]),
        ("0 * * * mon", BERLIN, "2024-03-30T20:00", "2024-03-31T23:30", ["31 22:00", "31 23:00"]),
    ],
)
def test_each_due_time_is_there_once(
    cron: str, zone: str, first: str, last: str, due: list[str]
) -> None:
    times = TickTimes(cron=cron, zone=zone)

    assert texts(times.between(at(first), at(last))) == due


def timer(**options: Any) -> Any:
    return flow_pipeline(
        Flow(name="t", trigger={"timer": options}, connection={"addresses": "k:1"})
    )


class Clock:
    """Reads a timer's ticks at chosen times, with the position that the last reading left."""

    def __init__(self, patch: pytest.MonkeyPatch, **options: Any) -> None:
        self._options = timer(**options).source
        self._patch = patch
        self.position: Any = None

    def read(self, now: str, most: int = 1000) -> list[Portion]:
        self._patch.setattr(timer_import, "_now", lambda: at(now))
        part = TimerPart(self._options)
        known = {key_of(part.place): self.position} if self.position else {}
        if not self._options.system().pending(known):
            return []
        found = list(TickReader(self._options, part.last(self.position)).take(most))
        self.position = found[-1].position
        return found

    def ticks(self, now: str, most: int = 1000) -> list[tuple[str, str]]:
        found = []
        for portion in self.read(now, most):
            columns = portion.records.to_pydict()  # type: ignore[union-attr]
            missed = [headers[0]["value"].decode() for headers in columns["headers"]]
            found += zip(texts(columns["timestamp"]), missed, strict=True)
        return found


def test_an_interval_begins_at_once_and_leaves_one_message_for_an_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, interval="1m")

    assert clock.ticks("2024-05-01T12:00") == [("01 12:00", "0")]
    assert clock.ticks("2024-05-01T12:00:59") == []
    assert clock.ticks("2024-05-01T12:01:10") == [("01 12:01", "0")]
    assert clock.ticks("2024-05-01T12:05:30") == [("01 12:05", "3")]
    assert clock.ticks("2024-05-01T12:05:59") == []


def test_all_missed_ticks_come_where_they_are_wanted_in_transactions_of_limited_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, interval="1m", missed="all")

    clock.ticks("2024-05-01T12:00")
    assert clock.ticks("2024-05-01T12:03", 2) == [("01 12:01", "0"), ("01 12:02", "0")]
    assert clock.ticks("2024-05-01T12:03", 2) == [("01 12:03", "0")]


def test_a_cron_notes_its_start_so_that_a_tick_during_an_outage_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, cron="0 8 * * *")

    assert clock.ticks("2024-05-01T07:50") == []
    assert clock.ticks("2024-05-01T08:01") == [("01 08:00", "0")]
    assert clock.ticks("2024-05-03T09:00") == [("03 08:00", "1")]


def test_another_cron_expression_begins_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = Clock(monkeypatch, cron="0 8 * * *"), Clock(monkeypatch, cron="0 * * * *")
    before.ticks("2024-05-01T07:50")
    before.ticks("2024-05-01T08:00")
    after.position = before.position

    assert after.ticks("2024-05-01T10:30") == []
    assert after.ticks("2024-05-01T11:00") == [("01 11:00", "0")]


def test_a_clock_that_was_put_back_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, interval="1m")
    clock.ticks("2024-05-01T12:00")

    assert clock.ticks("2024-05-01T11:59:30") == []
    with pytest.raises(TransientError, match=r"3600 s in the future.*penstock offsets set NAME"):
        clock.read("2024-05-01T11:00")


def test_a_payload_without_a_value_is_a_dead_letter_and_the_timer_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, interval="1m", payload="1 / attribute.missed")

    (first,) = clock.read("2024-05-01T12:00")
    (later,) = clock.read("2024-05-01T12:02")

    assert "division by zero" in first.bad[0].error
    assert later.records.to_pydict()["value"] == [b"1"]  # type: ignore[union-attr]


def records(headers: list[tuple[str, bytes | None]], value: bytes | None = b"x") -> pa.RecordBatch:
    pairs = [{"key": key, "value": text} for key, text in headers]
    return pa.RecordBatch.from_pydict(
        {
            "value": [value],
            "topic": ["t.in"],
            "partition": pa.array([0], pa.int32()),
            "offset": pa.array([5], pa.int64()),
            "timestamp": pa.array([1_714_564_800_000_000], pa.timestamp("us", "UTC")),
            "headers": pa.array(
                [pairs], pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
            ),
        }
    )


PLACE = {"topic": "t.in", "partition": 0, "offset": 5, "timestamp": 1_714_564_800_000}


@pytest.mark.parametrize(
    ("trigger", "headers", "attributes"),
    [
        ({"timer": "5s"}, [("timer.missed", b"2")], {"time": "2024-05-01T12:00:00Z", "missed": 2}),
        (
            {"rabbitmq": {"url": "amqp://h", "queues": "q"}},
            [
                ("tenant", b"a"),
                ("raw", b"\xff"),
                ("rabbitmq.custom", b"of the sender"),
                ("rabbitmq.message_id", b"m1"),
                ("rabbitmq.priority", b"3"),
                ("rabbitmq.redelivered", b"true"),
                ("rabbitmq.queue", b"q"),
            ],
            {
                "queue": "q",
                "message_id": "m1",
                "priority": 3,
                "redelivered": True,
                "headers": {"tenant": "a", "raw": b"\xff", "rabbitmq.custom": "of the sender"},
            },
        ),
        (
            {"timer": "5s"},
            [("timer.missed", b"many")],
            {"time": "2024-05-01T12:00:00Z", "missed": 0},
        ),
        (
            {"timer": "5s"},
            [("timer.missed", b"\xff")],
            {"time": "2024-05-01T12:00:00Z", "missed": 0},
        ),
        (
            {"rabbitmq": {"url": "amqp://h", "queues": "q"}},
            [("rabbitmq.priority", "\u00b2".encode()), ("rabbitmq.timestamp", b"9" * 5000)],
            {"priority": "\u00b2", "headers": {}},
        ),
        (
            {"jms": {"url": "amqp://h:1", "queues": "q"}},
            [("region", b"EU"), ("jms.destination", b"q"), ("jms.redelivered", b"false")],
            {"destination": "q", "redelivered": False, "properties": {"region": "EU"}},
        ),
        (
            {"file": {"folder": "/data"}},
            [("file.name", b"a.log"), ("file.path", b"/data/a.log")],
            {"file": "a.log", "path": "/data/a.log"},
        ),
    ],
)
def test_messages_have_the_documented_attributes(
    trigger: Any, headers: Any, attributes: dict[str, Any]
) -> None:
    flow = Flow(name="t", trigger=trigger, steps=[{"map": "attribute"}])
    messages = messages_of(records(headers), trigger_source(flow))

    assert messages[0].attribute == {**attributes, **PLACE}
    assert payloads(CompiledFlow(flow).run(messages, canned_systems())) == [{**attributes, **PLACE}]


@pytest.mark.parametrize(
    "trigger",
    [
        {"timer": "5s"},
        {"rabbitmq": {"url": "amqp://h", "queues": "q"}},
        {"jms": {"url": "amqp://h:1", "queues": "q"}},
        {"file": "/data"},
    ],
)
def test_a_trigger_that_is_not_kafka_is_an_import_into_the_topic_of_the_flow(trigger: Any) -> None:
    flow = Flow(name="t", trigger=trigger, connection={"addresses": "k:9092"})

    pipeline = flow_pipeline(flow).imported()

    source: Any = pipeline.source
    assert source.named_topics() == ["t.in"]
    assert source._log_source.headers is True
    assert pipeline.find_connection().spark()["kafka.bootstrap.servers"] == "k:9092"
    with pytest.raises(DefinitionError, match=r"'t\.in', which the trigger reads"):
        flow.then(publish={"kafka": {"topic": "t.in"}})


@pytest.mark.parametrize(
    ("steps", "given", "size"),
    [
        ([{"publish": {"kafka": {"topic": "b"}}}], {}, 1_000_000),
        ([{"publish": {"http": {"url": "https://a.example/"}}}], {}, 20_000),
        ([{"http": {"url": "https://a.example/", "method": "POST"}}], {}, 20_000),
        ([{"http": "https://a.example/"}], {}, 1_000_000),
        ([{"publish": {"http": {"url": "https://a.example/"}}}], {"max_messages_per_batch": 7}, 7),
        ([{"throttle": 250}, {"http": "https://a.example/"}], {}, 250),
        ([{"throttle": {"rate": 0.5, "burst": 3}}], {}, 3),
        ([{"throttle": 0.5}], {}, 1),
        ([{"throttle": 1e9}], {}, 1_000_000),
        ([{"throttle": 250}], {"max_messages_per_batch": 1000}, 1000),
    ],
)
def test_a_batch_has_fewer_messages_where_a_step_needs_that(
    steps: list[Any], given: dict[str, Any], size: int
) -> None:
    flow = Flow(
        name="t", trigger={"kafka": "a"}, connection={"addresses": "k:1"}, steps=steps, **given
    )

    source: Any = flow_pipeline(flow).source

    assert source.max_records_per_batch == size


def test_a_batch_of_a_trigger_that_is_an_import_is_bounded_too() -> None:
    flow = Flow(
        name="t",
        trigger={"timer": {"interval": 1}},
        connection={"addresses": "k:1"},
        max_messages_per_batch=9,
    )
    source: Any = flow_pipeline(flow).source

    assert source.into("t.in").with_headers().max_records_per_batch == 9


def test_a_join_that_waits_for_more_messages_than_a_batch_has_is_noted() -> None:
    steps = [{"join": {"count": 100}}]
    flow = Flow(name="t", trigger={"kafka": "a"}, steps=steps, max_messages_per_batch=99)

    assert flow.notes() == [
        "steps[0].join.count: is never reached: a batch has at most 99 messages, and a group is made of "
        "those of one batch; see 'max_messages_per_batch'"
    ]
