"""The import `http` into a topic: over runs, while the server is away, with steps and dead letters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.services.json_api import Answer, JsonApi, Seen
from tests.services.outage import stay_away

import penstock
from penstock import Connection, Pipeline, State
from penstock.imports.positions import Positions
from penstock.testing import eventually, read_all


class Feed:
    """Events after a cursor, 40 at a time; one of a hundred has no id."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, seen: Seen) -> Any:
        start = seen.number("after")
        end = min(start + 40, self.count)
        events = [{"id": n} if n % 100 != 99 else {"n": n} for n in range(start, end)]
        return {"events": events, "cursor": end}


@pytest.fixture
def api() -> Iterator[JsonApi]:
    with JsonApi(Feed()) as started:
        yield started


@pytest.fixture
def definition(connection: Connection, unique: str, api: JsonApi) -> Pipeline:
    source = {
        "url": api.url,
        "records": "/events",
        "key": "/id",
        "paging": {"cursor": {"pointer": "/cursor", "parameter": "after"}},
        "poll": 0.2,
    }
    return Pipeline(
        name=unique, connection=connection, source={"http": source}, sink={"kafka": unique}
    )


def ids(connection: Connection, topic: str) -> list[int]:
    """Return the ids in the order of the topic's one partition."""
    return [json.loads(record.value)["id"] for record in read_all(connection, topic)]


def expected(until: int) -> list[int]:
    return [n for n in range(until) if n % 100 != 99]


def test_each_run_goes_on_after_the_last_page(
    connection: Connection, unique: str, api: JsonApi, definition: Pipeline
) -> None:
    for count in (450, 450, 700):
        api.respond.count = count  # type: ignore[attr-defined]
        with penstock.start(definition, once=True) as running:
            assert running.wait(120)
    assert ids(connection, unique) == expected(700)
    records = read_all(connection, unique)
    assert [record.key for record in records] == [str(n).encode() for n in expected(700)]
    letters = read_all(connection, f"{unique}.dead-letters")
    assert [letter.value for letter in letters] == [b'{"n": %d}' % n for n in range(99, 700, 100)]
    assert b"nothing at '/id'" in dict(letters[0].headers)["penstock.error"]
    with Positions(connection) as positions:
        (position,) = positions.read(unique).positions.values()
    assert position == {"paging": "cursor", "cursor": "700", "number": True}


def test_a_server_that_is_busy_or_away_is_waited_for(
    connection: Connection, unique: str, api: JsonApi, definition: Pipeline
) -> None:
    feed = api.respond
    feed.count = 300  # type: ignore[attr-defined]
    with penstock.start(definition) as running:
        eventually(lambda: running.progress().rows == 297)
        api.stop()
        eventually(lambda: running.progress().state is State.RETRYING)
        assert "cannot be reached" in str(running.progress().last_error)
        feed.count = 500  # type: ignore[attr-defined]
        api.respond = lambda _: Answer(b"slow down", 429, {"Retry-After": "1"})
        stay_away()
        api.start()
        eventually(lambda: "HTTP 429" in str(running.progress().last_error))
        assert running.progress().state is State.RETRYING
        api.respond = feed
        eventually(lambda: running.progress().rows == 495)
        eventually(lambda: running.progress().state is State.RUNNING)
    assert ids(connection, unique) == expected(500)


def test_a_reply_cut_off_between_two_pages_loses_and_repeats_nothing(
    connection: Connection, unique: str, api: JsonApi, definition: Pipeline
) -> None:
    feed = api.respond
    feed.count = 400  # type: ignore[attr-defined]

    def every_third_fails(seen: Seen) -> Any:
        if len(api.requests) % 3 == 0:
            return Answer(feed(seen), headers={"Content-Length": "100000"})
        return feed(seen)

    api.respond = every_third_fails
    with penstock.start(definition) as running:
        eventually(lambda: running.progress().rows == 396)
    assert ids(connection, unique) == expected(400)


def test_a_document_is_imported_with_each_poll_unless_it_is_unchanged(
    connection: Connection, unique: str, api: JsonApi
) -> None:
    version = ["v1"]

    def respond(seen: Seen) -> Answer:
        if seen.headers.get("If-None-Match") == version[0]:
            return Answer(status=304)
        return Answer([{"id": 1}, {"id": 2}], headers={"ETag": version[0]})

    api.respond = respond
    definition = Pipeline(
        name=unique,
        connection=connection,
        source={"http": {"url": api.url, "poll": 0.2}},
        sink={"kafka": unique},
    )
    for _ in range(2):
        with penstock.start(definition, once=True) as running:
            assert running.wait(120)
    assert ids(connection, unique) == [1, 2]
    with penstock.start(definition) as running:
        before = len(api.requests)
        eventually(lambda: len(api.requests) > before + 2)
        version[0] = "v2"
        eventually(lambda: running.progress().rows == 2)
    assert ids(connection, unique) == [1, 2, 1, 2]
