"""Rows as messages of a real Apache Artemis; what it refuses goes to the dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.services.artemis import PASSWORD, USER, Artemis
from tests.services.jms_client import receive
from tests.services.outage import stay_away

from penstock import Connection, State, start
from penstock.errors import ConfigError, PenstockError, TransientError
from penstock.imports.jms.jms_import import JmsImport
from penstock.sinks.jms.jms_sink import JmsSink
from penstock.sinks.messages import Refusal
from penstock.testing import eventually, fill, read_all


def sent(artemis: Artemis, rows: dict[str, list[Any]], **options: Any) -> list[Refusal]:
    """Send rows without Spark."""
    sink = JmsSink(**{**artemis.options, "timeout": 20, **options})
    with sink.outlet() as outlet:
        return [*outlet.send(pa.RecordBatch.from_pydict(rows))]


def origin(count: int) -> dict[str, list[Any]]:
    return {
        "_penstock_topic": ["t"] * count,
        "_penstock_partition": [0] * count,
        "_penstock_offset": [*range(count)],
    }


def test_everything_that_a_message_can_have(artemis: Artemis, unique: str) -> None:
    rows = {
        "value": [b"one", "zwölf".encode()],
        "correlation_id": ["c", None],
        "type": ["Order", None],
        "reply_to": ["answers", None],
        "group_id": ["g", None],
        "properties": [{"n": 5, "ok": True, "t": "x", "f": 0.5}, None],
        **origin(2),
    }
    options = {"queue": unique, "priority": 7, "ttl": "1h", "persistent": False}
    assert sent(artemis, rows, **options) == []
    first, second = receive(artemis, unique)
    assert (first.body, second.body) == ("one", "zwölf")
    assert (first.id, second.id) == ("ID:t-0-0", "ID:t-0-1")
    assert (first.correlation_id, first.subject, first.reply_to) == ("c", "Order", "answers")
    assert (first.group_id, second.correlation_id, second.group_id) == ("g", None, None)
    assert first.properties == {"n": 5, "ok": True, "t": "x", "f": 0.5}
    assert (first.priority, first.durable, first.address) == (7, False, unique)
    assert 3500 < first.expiry_time - first.creation_time <= 3600


@pytest.mark.parametrize("kind", ["text", "bytes", "map", "stream"])
def test_kinds_of_messages_come_back_as_they_were(artemis: Artemis, unique: str, kind: str) -> None:
    values = [b'{"n":1,"t":"x","in":{"a":[1]}}', b"{}", None]
    assert sent(artemis, {"value": values}, queue=unique, message=kind) == []
    part = JmsImport(**artemis.options, queues=unique).parts()[0]
    with part.open(None) as reader:
        (portion,) = reader.take(10)
    found = portion.records["value"].to_pylist()
    if kind == "map":  # a map of JMS has no maps in it
        assert found == [b'{"n":1,"t":"x","in":"{\\"a\\":[1]}"}', b"{}", None]
    elif kind == "stream":  # nor has a stream, which has the values alone
        assert found == [b'[1,"x","{\\"a\\":[1]}"]', b"[]", None]
    else:
        assert found == values
    kinds = [dict(map(tuple, map(dict.values, each)))["jms.kind"]
             for each in portion.records["headers"].to_pylist()]  # fmt: skip
    assert kinds == [kind.encode(), kind.encode(), b"message"]


def test_a_stream_of_every_kind_of_value(artemis: Artemis, unique: str) -> None:
    values = [1, -(2**63), 0.5, True, None, "zw\u00f6lf", None]
    long = [*range(1000)]
    given = {"value": [json.dumps(values).encode(), json.dumps(long).encode(), b"[null]"]}
    assert sent(artemis, given, queue=unique, message="stream") == []
    assert [each.body for each in receive(artemis, unique)] == [values, long, [None]]
    (refusal,) = sent(artemis, {"value": [b"7"]}, queue=unique, message="stream")
    assert "a stream message is made of a JSON array or object" in refusal.error


def test_rows_choose_their_destination(artemis: Artemis, unique: str) -> None:
    names = [f"{unique}.{n % 230}" for n in range(460)]
    rows = {
        "value": [b"%d" % n for n in range(462)],
        "destination": [*names, None, "strict.missing"],
    }
    (refusal,) = sent(artemis, rows, queue=unique)
    assert (refusal.row, refusal.error_type) == (461, "DestinationError")
    assert "amqp:not-found" in refusal.error
    assert [each.body for each in receive(artemis, unique)] == ["460"]
    assert [each.body for each in receive(artemis, f"{unique}.7")] == ["7", "237"]


def test_rows_that_cannot_be_messages_are_named(artemis: Artemis, unique: str) -> None:
    rows = {"value": [b"\xff", b"ok"]}
    (refusal,) = sent(artemis, rows, queue=unique)
    assert (refusal.row, refusal.error_type) == (0, "UnicodeDecodeError")
    rows = {"value": [b"[1]", b"no json", b'{"n":1e400}', b'{"n":100000000000000000000}', b"{}"]}
    refusals = sent(artemis, rows, queue=unique, message="map")
    assert [each.row for each in refusals] == [0, 1, 3]
    assert "a map message is made of a JSON object" in refusals[0].error
    bad = pa.array([[("a", [1])], [("a", [2])]], pa.map_(pa.string(), pa.list_(pa.int64())))
    assert len(sent(artemis, {"value": [b"1", b"2"], "properties": bad}, queue=unique)) == 2


def test_artemis_drops_what_it_has_already(artemis: Artemis, unique: str) -> None:
    rows = {"value": [b"%d" % n for n in range(2000)], **origin(2000)}
    for _ in range(3):
        assert sent(artemis, rows, queue=unique, duplicate_detection=True) == []
    assert sorted(int(each.body) for each in receive(artemis, unique)) == [*range(2000)]
    (refusal,) = sent(artemis, {"value": [b"1"]}, queue=unique, duplicate_detection=True)
    assert "not known which record" in refusal.error


def test_a_topic_gets_each_message_for_each_subscription(artemis: Artemis, unique: str) -> None:
    parts = [
        JmsImport(**artemis.options, topics={unique: "s"}, client_id=f"{unique}{n}").parts()[0]
        for n in range(2)
    ]
    for part in parts:
        with part.open(None):
            pass
    assert sent(artemis, {"value": [b"1", b"2"]}, topic=unique) == []
    for part in parts:
        with part.open(None) as reader:
            (portion,) = reader.take(10)
            reader.settle()
        assert portion.records["value"].to_pylist() == [b"1", b"2"]


def test_large_messages(artemis: Artemis, unique: str) -> None:
    values = [bytes([65 + n]) * size for n, size in enumerate([10, 3_000_000, 15_000_000, 5])]
    assert sent(artemis, {"value": values}, queue=unique, message="bytes") == []
    assert [bytes(each.body) for each in receive(artemis, unique)] == values


WRONG: list[tuple[dict[str, Any], type[PenstockError], str]] = [
    ({"password": "wrong-password"}, ConfigError, "refused to authenticate the user 'penstock'"),
    ({"queue": "forbidden.x"}, ConfigError, "does not have permission"),
    ({"queue": "strict.x"}, ConfigError, "amqp:not-found"),
    ({"url": "amqp://127.0.0.1:9"}, TransientError, "no connection to amqp://127.0.0.1:9"),
    ({"queue": "full.x"}, TransientError, "amqp:resource-limit-exceeded"),
    ({"queue": "held.x", "timeout": 1}, TransientError, "takes no more messages for 'held.x'"),
]


@pytest.mark.parametrize(("options", "kind", "message"), WRONG)
def test_what_the_broker_refuses(
    artemis: Artemis, options: dict[str, Any], kind: type[PenstockError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        sent(artemis, {"value": [b"x" * 1000] * 3000}, **{"queue": "q", **options})
    assert message in str(caught.value)


def test_sending_over_tls_with_a_certificate(artemis: Artemis, unique: str) -> None:
    own = artemis.authority.client(USER)
    tls = {"ca": str(artemis.authority.ca), "queue": unique}
    files = {"certificate": str(own.certificate), "certificate_key": str(own.key)}
    for sink in (
        JmsSink(url=artemis.tls_url, username=USER, password=PASSWORD, **tls),
        JmsSink(url=artemis.mutual_url, **tls, **files),
    ):
        with sink.outlet() as outlet:
            assert [*outlet.send(pa.RecordBatch.from_pydict({"value": [b"1"] * 3000}))] == []
    assert len(receive(artemis, unique)) == 6000


# -- in pipelines


def test_a_pipeline_sends_rows_and_names_the_refused(
    connection: Connection, artemis: Artemis, unique: str, pipeline: Callable[..., Any]
) -> None:
    where = {3: "strict.missing", 4: f"{unique}.other"}
    fill(connection, unique, [{"n": n, "to": where.get(n), "kind": f"k{n}"} for n in range(20)])
    definition = pipeline(
        source={"kafka": unique},
        decode={"json": {"schema": "n bigint, to string, kind string"}},
        steps=[{"sql": "SELECT n, to, kind, map('k', kind) AS p FROM rows"}],
        sink={
            "jms": {
                **artemis.options, "queue": unique, "destination_column": "to", "type": "kind",
                "properties": "p", "duplicate_detection": True,
            }
        },
    )  # fmt: skip
    with start(definition, once=True) as running:
        assert running.wait(240)
        assert running.progress().failed == 1
    messages = receive(artemis, unique)
    assert sorted(json.loads(each.body)["n"] for each in messages) == [
        n for n in range(20) if n not in where
    ]
    assert all(each.subject == each.properties["k"] for each in messages)
    assert [json.loads(each.body) for each in receive(artemis, f"{unique}.other")] == [{"n": 4}]
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    assert json.loads(letter.value)["n"] == 3
    assert b"amqp:not-found" in (dict(letter.headers)["penstock.error"] or b"")


WRONG_COLUMNS = [
    ({"correlation_id": "nn"}, "did you mean 'n'?"),
    ({"type": "n"}, "'type' of the sink 'jms' names the column 'n', which is bigint"),
    ({"properties": "n"}, "it must be a map with text as keys, a struct, or array<struct"),
    ({"value": "v"}, "is configured to use the column 'v'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_COLUMNS)
def test_columns_that_cannot_be_what_they_are_named_for(
    connection: Connection,
    artemis: Artemis,
    unique: str,
    pipeline: Callable[..., Any],
    options: dict[str, str],
    message: str,
) -> None:
    fill(connection, unique, [{"n": 1}])
    definition = pipeline(
        source={"kafka": unique},
        decode={"json": {"schema": "n bigint"}},
        sink={"jms": {**artemis.options, "queue": unique, **options}},
    )
    with pytest.raises(PenstockError) as caught, start(definition, once=True) as running:
        running.wait(120)
    assert message in str(caught.value)


def test_a_broker_that_is_away_is_waited_for(
    connection: Connection, unique: str, pipeline: Callable[..., Any]
) -> None:
    with Artemis() as own:
        fill(connection, unique, [{"n": n} for n in range(2000)])
        definition = pipeline(
            source={"kafka": {"topics": unique, "max_records_per_batch": 500}},
            sink={"jms": {**own.options, "queue": unique, "message": "bytes", "value": "value",
                          "duplicate_detection": True}},
            restart={"wait": "200ms", "longest": "1s"},
        )  # fmt: skip
        with start(definition) as running:
            eventually(lambda: running.progress().rows >= 2000, timeout=120)
            own.kill()
            fill(connection, unique, [{"n": n} for n in range(2000, 4000)])
            eventually(lambda: running.progress().state is State.RETRYING, timeout=120)
            assert "no connection to" in str(running.progress().last_error)
            stay_away()
            own.start()
            eventually(lambda: running.progress().rows >= 4000, timeout=120)
        found = [json.loads(bytes(each.body))["n"] for each in receive(own, unique)]
    assert sorted(found) == [*range(4000)]
