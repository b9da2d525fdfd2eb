"""Logs of deployments and workers over the API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.unit.server.conftest import PASSWORD, Api
from tests.unit.server.test_access import serving

from penstock.control.store import ControlStore
from penstock.control.store.logs import LogLine
from penstock.server.settings import StreamSettings

Put = Callable[..., dict[str, Any]]
LOGS = "/api/v1/deployments/orders/logs"
QUICK = StreamSettings(every=0.05, heartbeat=0.1, most=2)


def add(store: ControlStore, *events: str, deployment: str = "orders", **more: Any) -> None:
    given = {"level": "info", **more}
    store.logs.add("w1", [LogLine(deployment, event=event, **given) for event in events])


def events(reply: Any) -> list[str]:
    assert reply.status_code == 200, reply.text
    return [each["event"] for each in reply.json()["items"]]


def test_lines_come_in_pages_the_oldest_first(
    client: TestClient, store: ControlStore, put: Put
) -> None:
    put()
    add(store, "a", "b", "c", fields={"batch": 7})
    add(store, "of the worker", deployment="")
    page = client.get(LOGS, params={"limit": 2}).json()
    rest = client.get(LOGS, params={"limit": 2, "cursor": page["next"]}).json()

    assert [each["event"] for each in page["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["next"] is None
    first = page["items"][0]
    assert {key: first[key] for key in ("deployment", "worker", "level", "fields")} == {
        "deployment": "orders", "worker": "w1", "level": "info", "fields": {"batch": 7},
    }  # fmt: skip
    assert events(client.get(LOGS, params={"after": first["number"]})) == ["b", "c"]
    assert events(client.get(LOGS, params={"tail": 2})) == ["b", "c"]


def test_lines_are_selected_by_level_and_time(
    client: TestClient, store: ControlStore, put: Put
) -> None:
    put()
    add(store, "old", age=7200.0)
    add(store, "bad", level="error", age=120.0)
    add(store, "new")

    assert events(client.get(LOGS, params={"level": "WARNING"})) == ["bad"]
    assert events(client.get(LOGS, params={"since": "1h"})) == ["bad", "new"]
    assert events(client.get(LOGS, params={"since": "30s"})) == ["new"]
    assert events(client.get(LOGS, params={"since": "0"})) == ["old", "bad", "new"]
    assert events(client.get(LOGS, params={"since": store.database.time() - 300})) == ["bad", "new"]
    assert events(client.get(LOGS, params={"level": "info", "since": "3h", "tail": 1})) == ["new"]


def test_the_own_lines_of_a_worker(client: TestClient, store: ControlStore, put: Put) -> None:
    put()
    add(store, "of the run")
    add(store, "of the worker", deployment="")
    store.workers.join("silent", "host", 1)
    reply = client.get("/api/v1/workers/w1/logs")

    assert events(reply) == ["of the worker"]
    assert reply.json()["items"][0]["deployment"] is None
    assert events(client.get("/api/v1/workers/silent/logs")) == []


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("level=loud", 400, "level is 'loud'; allowed: critical, debug, error, info, warning"),
        ("level=", 400, "level is ''"),
        ("since=10x", 400, "since is '10x'; give a duration before now, as 30s, 10m, 2h or 1d"),
        ("since=-1", 400, "since is '-1'"),
        ("since=nan", 400, "since is 'nan'"),
        ("since=1e400", 400, "since is '1e400'"),
        ("since=%D9%A1m", 400, "since is"),
        ("limit=0", 400, "query.limit"),
        ("limit=1001", 400, "query.limit"),
        ("limit=x", 400, "query.limit"),
        ("tail=0", 400, "query.tail"),
        ("tail=1001", 400, "query.tail"),
        ("tail=5&after=1", 400, "tail is given, and a start too (after, cursor); give one of them"),
        ("after=-1", 400, "query.after"),
        ("cursor=!", 400, "is not a cursor"),
        ("cursor=ImEi", 400, "the cursor is not one of a list"),
        ("cursor=dHJ1ZQ==", 400, "the cursor is not one of a list"),
    ],
)
def test_a_wrong_question_is_refused(
    client: TestClient, put: Put, query: str, status: int, words: str
) -> None:
    put()
    for path in (LOGS, "/api/v1/workers/w1/logs", f"{LOGS}/stream"):
        if path.endswith("stream") and query.startswith(("limit", "tail=5")):
            continue
        client.app.state.store.workers.join("w1", "host", 1)  # type: ignore[attr-defined]
        reply = client.get(f"{path}?{query}")

        assert reply.status_code == status, reply.text
        assert words in reply.json()["detail"]


@pytest.mark.parametrize("suffix", ["", "/stream"])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("deployments/nope/logs", "there is no deployment 'nope'; there are none"),
        ("deployments/%00/logs", "there is no deployment"),
        ("deployments/..%2f..%2fetc/logs", ""),
        ("workers/nope/logs", "there is no worker 'nope'; there are none"),
        ("workers/%00/logs", "there is no worker"),
        ("workers/%ED%A0%80/logs", "there is no worker"),
    ],
)
def test_unknown_names_are_not_found(
    client: TestClient, path: str, words: str, suffix: str
) -> None:
    reply = client.get(f"/api/v1/{path}{suffix}")

    assert reply.status_code == 404
    assert words in reply.json()["detail"]


def test_logs_are_for_those_who_may_see_the_deployment(
    api: Api, store: ControlStore, people: None, put: Put
) -> None:
    put(team="b")
    put("ours", team="a")
    add(store, "theirs")
    add(store, "ours", deployment="ours")
    add(store, "own", deployment="")
    tom, vic = api("tom"), api("vic")

    assert tom.get(LOGS).status_code == 404
    assert tom.get(f"{LOGS}/stream").status_code == 404
    assert events(tom.get("/api/v1/deployments/ours/logs")) == ["ours"]
    assert tom.get("/api/v1/workers/w1/logs").status_code == 403
    assert tom.get("/api/v1/workers/w1/logs/stream").status_code == 403
    assert events(vic.get(LOGS)) == ["theirs"]
    assert events(vic.get("/api/v1/workers/w1/logs")) == ["own"]
    anonymous = api(login=True)
    assert anonymous.get(LOGS).status_code == 401


def stream(port: int, path: str = LOGS, **given: Any) -> Iterator[dict[str, Any]]:
    address = f"http://127.0.0.1:{port}{path}/stream"
    with httpx.stream("GET", address, timeout=60, **given) as reply:
        assert reply.status_code == 200, reply.read()
        assert reply.headers["content-type"].startswith("text/event-stream")
        for line in reply.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])
            elif line.startswith(":"):
                yield {}


def lines(given: Iterator[dict[str, Any]]) -> Iterator[str]:
    return (each["event"] for each in given if each)


def test_a_stream_has_each_line_of_one_deployment_once(store: ControlStore, put: Put) -> None:
    put()
    put("other")
    add(store, *[f"{n}" for n in range(1100)])  # more than one page
    with serving(store, streams=QUICK) as port:
        given = lines(stream(port, params={"after": 0}))
        first = [next(given) for _ in range(1100)]
        add(store, "other", deployment="other")
        add(store, "own", deployment="")
        add(store, "after", "hostile\r\n\r\ndata: {}")
        later = [next(given), next(given)]

    assert first == [f"{n}" for n in range(1100)]
    assert later == ["after", "hostile\r\n\r\ndata: {}"]


def test_a_stream_starts_with_the_newest_lines_or_after_the_last_one(
    store: ControlStore, put: Put
) -> None:
    put()
    add(store, "a", "b", level="error")
    add(store, "c", level="info")
    number = store.logs.after(0)[0].number
    with serving(store, streams=QUICK) as port:
        newest = lines(stream(port, params={"tail": 1, "level": "error"}))
        # A browser that comes back sends the number that it has seen, with the same address.
        back = lines(stream(port, params={"tail": 1}, headers={"Last-Event-ID": str(number)}))
        assert next(newest) == "b"
        assert [next(back), next(back)] == ["b", "c"]
        add(store, "quiet", level="info")
        add(store, "d", level="critical")
        assert next(newest) == "d"


def test_a_stream_of_a_worker_and_no_stream_too_many(store: ControlStore) -> None:
    add(store, "before", deployment="")
    with serving(store, streams=QUICK) as port:
        path = "/api/v1/workers/w1/logs"
        given = [stream(port, path) for _ in range(2)]
        assert [next(each) for each in given] == [{}, {}]
        refused = httpx.get(f"http://127.0.0.1:{port}{path}/stream")
        add(store, "after", deployment="")
        assert [next(lines(each)) for each in given] == ["after", "after"]

    assert (refused.status_code, "2 streams of logs are open" in refused.text) == (503, True)


def test_a_stream_has_no_lines_for_who_may_not_see_the_deployment_any_more(
    store: ControlStore, people: None, put: Put
) -> None:
    put(team="a")
    with serving(store, streams=QUICK, login=True) as port:
        given = stream(port, auth=("tom", PASSWORD))
        next(given)
        add(store, "ours")
        assert next(lines(given)) == "ours"
        put(team="b")
        all_lines = stream(port, auth=("ann", PASSWORD))
        next(all_lines)
        add(store, "theirs")
        assert next(lines(all_lines)) == "theirs"
        assert [next(given) for _ in range(3)] == [{}, {}, {}]
