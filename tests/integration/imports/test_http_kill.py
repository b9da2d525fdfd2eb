"""A task that is killed at any moment: each page is in the topic once, or is requested again."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from math import inf
from multiprocessing import get_context
from typing import Any

import pytest
from tests.faults.kills import kills
from tests.services.json_api import JsonApi, Seen

from penstock import Connection
from penstock.imports.http.http_import import HttpImport
from penstock.imports.part_task import Errand, run
from penstock.imports.positions import Known, create_topic
from penstock.kafka import Admin
from penstock.testing import eventually, read_all

KILLS = dict.fromkeys(("offset", "next_link", "since"), kills(6))
RECORDS = 10_000
FORMS: dict[str, Any] = {
    "offset": {"offset": {"size": 20}},
    "next_link": {"next_link": "/next"},
    "since": {"since": {"parameter": "from", "field": "/at", "page_size": 25}},
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def respond(seen: Seen) -> Any:
    """Give a page in the way that is asked for."""
    if "from" in seen.params:
        start = (seen.number("from") - 1) * 3
        return {"data": _data(start, start + 25)}
    start = seen.number("offset") or 20 * seen.number("p")
    following = f"?p={start // 20 + 1}" if start + 20 < RECORDS else None
    return {"data": _data(start, start + 20), "next": following}


def _data(start: int, end: int) -> list[dict[str, int]]:
    return [{"id": n, "at": 1 + n // 3} for n in range(start, min(end, RECORDS))]


@pytest.fixture
def api() -> Iterator[JsonApi]:
    with JsonApi(respond) as started:
        yield started


@pytest.mark.by_turns
@pytest.mark.parametrize("form", FORMS)
def test_killed_tasks_lose_and_repeat_nothing(
    connection: Connection, unique: str, api: JsonApi, form: str
) -> None:
    create_topic(connection)
    with Admin(connection) as admin:
        admin.create_topic(unique)
    paging = FORMS[form]
    if form == "since":
        paging = {"since": {**paging["since"], "start": 1}}
    source = HttpImport(url=api.url, records="/data", paging=paging)
    (part,) = source.system().pending({})
    letters = f"{unique}.dead-letters"
    errand = Errand(unique, 0, part, connection, unique, letters, Known(), 1000)
    chance = random.Random(unique)
    for _ in range(KILLS[form]):
        process = get_context("spawn").Process(target=run, args=(errand, inf))
        process.start()
        until = len(api.requests) + chance.randint(1, 15)
        eventually(lambda until=until: len(api.requests) >= until, every=0.001)
        assert process.is_alive()
        process.kill()
        process.join()
    killed = len(read_all(connection, unique))
    assert killed < RECORDS
    outcome = run(errand, inf)
    assert outcome.error is None
    found = [json.loads(record.value)["id"] for record in read_all(connection, unique)]
    assert found == [*range(RECORDS)]
    print(f"http, {form}: {KILLS[form]} kills, {RECORDS} records, none lost, none twice")
