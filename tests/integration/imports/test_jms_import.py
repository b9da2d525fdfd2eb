"""The import `jms` into a topic, with a real Apache Artemis: over runs, and while the broker is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.services.artemis import Artemis
from tests.services.jms_client import jms_message, receive, send, texts
from tests.services.outage import stay_away

import penstock
from penstock import Connection, Pipeline, State
from penstock.errors import FencedError
from penstock.imports.positions import Positions
from penstock.testing import eventually, read_all


@pytest.fixture(scope="module")
def own() -> Iterator[Artemis]:
    """A broker that tests of this file kill."""
    with Artemis() as server:
        yield server


def definition(connection: Connection, name: str, own: Artemis, **options: Any) -> Pipeline:
    source = {**own.options, "queues": name, "poll": "200ms", "timeout": 20, **options}
    return Pipeline(
        name=name,
        connection=connection,
        source={"jms": source},
        sink={"kafka": name},
        restart={"wait": "100ms", "longest": "1s"},
    )


def numbers(connection: Connection, topic: str) -> list[int]:
    return sorted(int(record.value) for record in read_all(connection, topic))


def test_queues_and_topics_into_a_topic(connection: Connection, unique: str, own: Artemis) -> None:
    prices = f"{unique}.prices"
    given = definition(
        connection, unique, own, queues=[unique], topics={prices: "s"}, client_id=unique
    )
    sent = texts(40)
    sent[3] = jms_message("object", b"\xac\xed", id="ID:3")
    sent[4] = jms_message("text", "4", id="ID:4", properties={"customer": "x"}, correlation_id="c")
    send(own, unique, sent)
    for start in (100, 200):  # the first run makes the subscription, and the second reads it
        with penstock.start(given, once=True) as running:
            assert running.wait(120)
        send(own, prices, texts(5, start), "topic")
    with penstock.start(given, once=True) as running:
        assert running.wait(120)
    found = {int(record.value): record for record in read_all(connection, unique)}
    assert sorted(found) == [n for n in range(40) if n != 3] + [*range(100, 105), *range(200, 205)]
    assert found[4].key == b"ID:4"
    headers = dict(found[4].headers)
    assert (headers["customer"], headers["jms.correlation_id"]) == (b"x", b"c")
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    why = dict(letter.headers)
    assert b"Java object" in (why["penstock.error"] or b"")
    assert json.loads(why["penstock.place"] or b"") == {"queue": unique}
    with Positions(connection) as positions:
        known = positions.read(unique).positions
    assert known[json.dumps({"queue": unique}, separators=(",", ":"))] == {"messages": 40}
    assert receive(own, unique) == []


def test_a_broker_that_is_away_is_waited_for_and_another_process_takes_over(
    connection: Connection, unique: str, own: Artemis
) -> None:
    given = definition(connection, unique, own)
    send(own, unique, texts(500))
    with penstock.start(given) as running:
        eventually(lambda: len(read_all(connection, unique)) == 500, timeout=120)
        own.kill()
        eventually(lambda: running.progress().state is State.RETRYING, timeout=120)
        stay_away()
        own.start()
        send(own, unique, texts(500, 500))
        eventually(lambda: len(read_all(connection, unique)) >= 1000, timeout=120)
        assert running.is_active
        with penstock.start(given) as second:
            send(own, unique, texts(500, 1000))
            with pytest.raises(FencedError, match="was started by another process"):
                running.wait(120)
            eventually(lambda: len(read_all(connection, unique)) >= 1500, timeout=120)
            assert second.is_active
    # Those that were imported and not acknowledged when the broker was killed would be there twice.
    assert sorted({*numbers(connection, unique)}) == [*range(1500)]
