"""Events as a list and as a stream, and the audit log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient
from tests.unit.server.conftest import PASSWORD, Api
from tests.unit.server.test_access import serving

from penstock.control.store import ControlStore
from penstock.server.settings import StreamSettings
from penstock.testing import eventually

Put = Callable[..., dict[str, Any]]
EVENTS = "/api/v1/events"
QUICK = StreamSettings(every=0.05, heartbeat=0.1, most=3)


def test_events_are_listed_after_a_number(client: TestClient, put: Put) -> None:
    put("a")
    put("b")
    put("a", team="x")
    items = client.get(EVENTS).json()["items"]
    first = items[0]["number"]

    assert [(each["deployment"], each["kind"]) for each in items] == [
        ("a", "created"), ("b", "created"), ("a", "changed"),
    ]  # fmt: skip
    later = client.get(EVENTS, params={"after": first, "deployment": "a"}).json()["items"]
    assert [each["kind"] for each in later] == ["changed"]
    page = client.get(EVENTS, params={"limit": 2}).json()
    rest = client.get(EVENTS, params={"limit": 2, "cursor": page["next"]}).json()
    assert page["items"] + rest["items"] == items
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("query", "headers", "status", "words"),
    [
        ("after=-1", {}, 400, "query.after"),
        ("after=x", {}, 400, "query.after"),
        ("after=99999999999999999999999", {}, 400, "query.after"),
        ("cursor=ImEi", {}, 400, "not one of a list of events"),
        ("deployment=nope", {}, 404, "there is no deployment"),
        ("deployment=%00", {}, 404, "there is no deployment"),
        ("", {"Last-Event-ID": "x"}, 400, "it is the number of an event"),
    ],
)
def test_a_wrong_question_is_refused(
    client: TestClient, query: str, headers: Any, status: int, words: str
) -> None:
    reply = client.get(f"{EVENTS}?{query}", headers=headers)

    assert reply.status_code == status
    assert words in reply.json()["detail"]


def test_a_team_gets_its_own_events_in_full_pages(api: Api, people: None, put: Put) -> None:
    for n in range(6):
        put(f"p{n}", team="a" if n % 2 else "b")
    tom = api("tom")
    page = tom.get(EVENTS, params={"limit": 2}).json()
    rest = tom.get(EVENTS, params={"limit": 2, "cursor": page["next"]}).json()

    names = [each["deployment"] for each in page["items"] + rest["items"]]
    assert (names, rest["next"]) == (["p1", "p3", "p5"], None)


@pytest.mark.parametrize("query", ["limit=1", "tail=1"])
def test_a_small_page_asks_the_store_once_however_many_events_are_of_others(
    api: Api, people: None, put: Put, store: ControlStore, query: str
) -> None:
    put("ours", team="a")
    put("others", team="b")
    for _ in range(20):
        store.events.add("others", "failed", "x")
    tom = api("tom")
    statements: list[str] = []

    def note(*given: Any) -> None:
        statements.append(given[2])

    sa.event.listen(store.database.engine, "before_cursor_execute", note)
    items = tom.get(f"{EVENTS}?{query}").json()["items"]

    assert [each["deployment"] for each in items] == ["ours"]
    assert sum("from penstock_events" in " ".join(each.lower().split()) for each in statements) == 1


def stream(port: int, **given: Any) -> Iterator[dict[str, Any]]:
    headers = {"Accept": "text/event-stream", **given.pop("headers", {})}
    address = f"http://127.0.0.1:{port}{EVENTS}"
    with httpx.stream("GET", address, headers=headers, timeout=60, **given) as reply:
        assert reply.status_code == 200, reply.read()
        assert reply.headers["content-type"].startswith("text/event-stream")
        for line in reply.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])
            elif line.startswith(":"):
                yield {}


def events(given: Iterator[dict[str, Any]]) -> Iterator[str]:
    return (each["text"] for each in given if each)


def test_a_stream_delivers_every_event_once_and_in_order(store: ControlStore) -> None:
    for n in range(5):
        store.events.add("a", "note", f"{n}")
    start = store.events.after()[1].number
    with serving(store, streams=QUICK) as port, ThreadPoolExecutor(4) as pool:
        listeners = [
            events(stream(port, params={"after": 0})),
            events(stream(port, headers={"Last-Event-ID": f"{start}"})),
        ]
        received = [
            pool.submit(lambda each=each: [next(each) for _ in range(43)]) for each in listeners[1:]
        ]
        received += [pool.submit(lambda: [next(listeners[0]) for _ in range(45)])]
        for n in range(5, 45):
            store.events.add("a", "note", f"{n}")
        late, all_of_them = (each.result(60) for each in received)

    assert all_of_them == [f"{n}" for n in range(45)]
    assert late == [f"{n}" for n in range(2, 45)]


def test_a_stream_without_a_start_has_new_events_only_and_shows_that_it_lives(
    store: ControlStore,
) -> None:
    store.events.add("a", "note", "before")
    with serving(store, streams=QUICK) as port:
        given = stream(port)
        assert [next(given), next(given), next(given)] == [{}, {}, {}]
        store.events.add("a", "note", "after")
        assert next(events(given)) == "after"


def test_one_stream_too_many_is_refused_and_there_is_room_afterwards(store: ControlStore) -> None:
    with serving(store, streams=QUICK) as port:
        open_streams = [stream(port) for _ in range(3)]
        for each in open_streams:
            next(each)
        address = f"http://127.0.0.1:{port}{EVENTS}"
        headers = {"Accept": "text/event-stream"}
        refused = httpx.get(address, headers=headers)
        for each in open_streams:
            each.close()  # type: ignore[attr-defined]

        def has_room() -> bool:
            with httpx.stream("GET", address, headers=headers) as reply:
                return reply.status_code == 200

        assert (refused.status_code, "3 are allowed" in refused.text) == (503, True)
        assert eventually(has_room)


def test_a_stream_ends_after_a_while_so_that_rights_are_checked_again(store: ControlStore) -> None:
    with serving(store, streams=StreamSettings(every=0.02, seconds=0.2)) as port:
        assert list(events(stream(port))) == []


def test_a_stream_needs_a_user_and_has_what_the_user_may_see(
    store: ControlStore, people: None, put: Put
) -> None:
    put("theirs", team="b")
    put("ours", team="a")
    with serving(store, streams=QUICK, login=True) as port:
        refused = httpx.get(
            f"http://127.0.0.1:{port}{EVENTS}", headers={"Accept": "text/event-stream"}
        )
        given = stream(port, params={"after": 0}, auth=("tom", PASSWORD))
        first = next(each for each in given if each)

    assert refused.status_code == 401
    assert first["deployment"] == "ours"


def test_the_audit_log_is_for_admins_and_says_who_did_what(
    api: Api, people: None, put: Put
) -> None:
    put("a")
    ann = api("ann")
    ann.post("/api/v1/deployments/a/pause")
    rows = ann.get("/api/v1/audit").json()["items"]

    assert [(row["who"], row["action"], row["target"]) for row in rows] == [
        ("ann", "deployment.paused", "a"), ("local", "deployment.put", "a"),
    ]  # fmt: skip
    assert ann.get("/api/v1/audit", params={"target": "b"}).json()["items"] == []
    page = ann.get("/api/v1/audit", params={"limit": 1}).json()
    rest = ann.get("/api/v1/audit", params={"limit": 1, "cursor": page["next"]}).json()
    assert page["items"] + rest["items"] == rows
    assert ann.get("/api/v1/audit", params={"cursor": "ImEi"}).status_code == 400
    assert api("olga").get("/api/v1/audit").status_code == 403
