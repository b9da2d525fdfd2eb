"""Messages over the API, on a real broker: bounded, filtered, in pages, and written."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.integration.server.small_app import Api, app_of

from penstock.config import Connection
from penstock.kafka import Admin, Producer
from penstock.server.kafka import message_browsing, message_routes
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.message_routes import messages_router
from penstock.testing import fill, read_all

NOON = 1_700_000_000_000
ID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.fixture
def api(connections: Connections) -> Iterator[Api]:
    changes: list[Any] = []

    def audit(who: str, action: str, target: str, **detail: Any) -> None:
        changes.append((who, action, target, detail))

    with TestClient(
        app_of(messages_router(connections, audit)), raise_server_exceptions=False
    ) as client:
        yield Api(client, changes)


@pytest.fixture
def trades(connection: Connection, topic: Callable[..., str]) -> str:
    """Twelve trades in three partitions, one a second; each has a key, a header and a JSON value."""
    name = topic("trades")
    with Admin(connection) as admin:
        admin.create_topic(name, 3)
    with Producer(connection) as producer:
        for n in range(12):
            producer.produce(
                name,
                f"k{n}",
                json.dumps({"n": n, "side": "buy" if n % 2 else "sell", "at": {"price": n / 2}}),
                partition=n % 3,
                headers={"trace": str(n)},
                timestamp=NOON + n * 1000,
            )
    return name


def numbers(page: dict[str, Any]) -> list[int]:
    return [item["value"]["data"]["n"] for item in page["items"]]


def all_pages(api: Api, path: str, **params: Any) -> list[list[int]]:
    pages, cursor = [], None
    while True:
        page = api.get(path, **params, **({"cursor": cursor} if cursor else {}))
        pages.append(numbers(page))
        cursor = page["next"]
        if cursor is None:
            return pages


def test_the_newest_messages_come_first_by_default(api: Api, trades: str) -> None:
    page = api.get(f"/topics/{trades}/messages", limit=4)
    assert numbers(page) == [11, 10, 9, 8]
    first = page["items"][0]
    assert (first["partition"], first["offset"], first["timestamp"]) == (2, 3, NOON + 11_000)
    assert first["key"] == {"form": "text", "data": "k11", "size": 3}
    assert first["headers"] == [
        {"name": "trace", "value": {"form": "text", "data": "11", "size": 2}}
    ]
    assert first["tombstone"] is False


@pytest.mark.parametrize(
    ("order", "expected"), [("newest", list(range(11, -1, -1))), ("oldest", list(range(12)))]
)
@pytest.mark.parametrize("limit", [5, 500])
def test_pages_have_every_message_once(
    api: Api, trades: str, order: str, expected: list[int], limit: int
) -> None:
    pages = all_pages(api, f"/topics/{trades}/messages", order=order, limit=limit)
    assert [n for page in pages for n in page] == expected
    assert all(len(page) <= limit for page in pages)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"partition": 1}, [1, 4, 7, 10]),
        ({"partition": 1, "from": "2"}, [7, 10]),
        ({"from": "1", "until": "3"}, [3, 4, 5, 6, 7, 8]),
        ({"from": "-1"}, [9, 10, 11]),
        ({"from": f"@{NOON + 3000}", "until": f"@{NOON + 6000}"}, [3, 4, 5]),
        ({"from": "2023-11-14T22:13:30Z"}, [10, 11]),
        ({"key": "k7"}, [7]),
        ({"key": "k"}, []),
        ({"value": "buy", "partition": 0}, [3, 9]),
        ({"pointer": "/side", "equals": "sell"}, [0, 2, 4, 6, 8, 10]),
        ({"pointer": "/at/price", "equals": "2"}, [4]),
        ({"pointer": "/at", "equals": '{"price": 1.50}'}, [3]),
        ({"pointer": "/nothing"}, []),
        ({"header": "trace=5"}, [5]),
        ({"header": ["trace", "trace=5"], "value": "buy"}, [5]),
        ({"header": "other"}, []),
        ({"from": "latest"}, []),
        ({"from": "3", "until": "1"}, []),
    ],
)
def test_messages_are_filtered(
    api: Api, trades: str, params: dict[str, Any], expected: list[int]
) -> None:
    page = api.get(f"/topics/{trades}/messages", order="oldest", **params)
    assert (numbers(page), page["next"]) == (expected, None)


def test_a_search_goes_on_beyond_the_first_window(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [{"n": n} for n in range(3000)])
    page = api.get(f"/topics/{topic()}/messages", limit=5, pointer="/n", equals="3", seconds=30)
    assert (numbers(page), page["next"], page["scanned"]) == ([3], None, 3000)


def test_values_are_shown_by_what_they_are(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    big = b'{"id": 123456789012345678901234567890}'
    values = [big, b"plain \xc3\xa9", b"\xff\x00", None, b"", b"NaN", b'"\\ud800"', b"a\0b"]
    fill(connection, topic(), values)
    reply = api("GET", f"/topics/{topic()}/messages?order=oldest")
    shown = [item["value"] for item in reply.json()["items"]]
    assert b"123456789012345678901234567890" in reply.content
    assert [(each["form"], each["data"]) for each in shown[1:]] == [
        ("text", "plain é"),
        ("base64", "/wA="),
        ("null", None),
        ("text", ""),
        ("text", "NaN"),
        ("text", '"\\ud800"'),
        ("base64", "YQBi"),
    ]
    assert [item["tombstone"] for item in reply.json()["items"]].index(True) == 3


def test_a_named_format_decodes_and_says_what_it_could_not(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [(258).to_bytes(8, "big"), b"abc"])
    items = api.get(f"/topics/{topic()}/messages", order="oldest", format="long")["items"]
    assert items[0]["value"] == {"form": "long", "data": 258, "size": 8}
    assert items[1]["value"]["data"] == "abc"
    assert "8" in items[1]["value"]["error"]


def test_long_values_are_cut_off(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    long = b"\xff" * 3000
    fill(connection, topic(), [json.dumps(["x" * 500]).encode(), long])
    items = api.get(f"/topics/{topic()}/messages", order="oldest", value_bytes=102)["items"]
    assert items[0]["value"] == {
        "form": "text",
        "data": '["' + "x" * 98,
        "size": 504,
        "truncated": True,
    }
    assert base64.b64decode(items[1]["value"]["data"]) == long[:75]


def test_a_page_is_bounded_in_bytes_and_goes_on(
    api: Api, connection: Connection, topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(connection, topic(), [{"n": n, "pad": "x" * 1000} for n in range(6)], partitions=2)
    monkeypatch.setattr(message_routes, "_PAGE_BYTES", 4000)
    monkeypatch.setattr(message_browsing, "_KEPT", 3000)
    for order in ("newest", "oldest"):
        pages = all_pages(api, f"/topics/{topic()}/messages", order=order, limit=10)
        assert sorted(n for page in pages for n in page) == list(range(6))
        assert max(map(len, pages)) <= 3


def test_markers_of_transactions_are_no_messages(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [])
    with Producer(connection, transactional_id=topic("tx")) as producer:
        for commits in (True, False, True):
            producer.begin_transaction()
            producer.produce(topic(), value=json.dumps({"n": int(commits)})).result()
            producer.commit_transaction() if commits else producer.abort_transaction()
    for order in ("newest", "oldest"):
        path = f"/topics/{topic()}/messages"
        assert all_pages(api, path, order=order, limit=1)[:2] == [[1], [1]]
        every = all_pages(api, path, order=order, isolation="read_uncommitted")
        assert every == [[1, 0, 1]]


def test_browsing_joins_no_group_and_commits_nothing(
    connection: Connection, trades: str, unique: str
) -> None:
    commits = connection.to_config() | {"group.id": unique, "enable.auto.commit": True}
    connections = Connections(lambda _name: Connection.from_config(commits))
    app = app_of(messages_router(connections, lambda *_a, **_k: None))
    with TestClient(app) as client:
        assert len(Api(client).get(f"/topics/{trades}/messages")["items"]) == 12
    connections.close()
    with Admin(connection) as admin:
        assert unique not in [group.name for group in admin.groups()]
        assert admin.committed("penstock-without-group") == {}


def test_records_are_written_with_keys_headers_and_times(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [], partitions=2)
    records = [
        {
            "key": "a",
            "value": {"n": 1},
            "headers": {"h": ["1", None]},
            "timestamp": NOON,
            "partition": 1,
        },
        {"key": {"id": 1}, "value": "text", "partition": 0},
        {"key_base64": "/w==", "value_base64": "AAE=", "partition": 0},
        {"key": "gone", "partition": 0},
    ]
    reply = api("POST", f"/topics/{topic()}/messages", "operator", json={"records": records})
    assert (reply.status_code, reply.json()["items"][0]) == (201, {"partition": 1, "offset": 0})
    written = {(r.partition, r.offset): r for r in read_all(connection, topic())}
    assert written[1, 0].value == b'{"n":1}'
    assert written[1, 0].headers == (("h", b"1"), ("h", None))
    assert written[1, 0].timestamp == NOON
    assert [(r.key, r.value) for where, r in sorted(written.items()) if where[0] == 0] == [
        (b'{"id":1}', b"text"),
        (b"\xff", b"\0\1"),
        (b"gone", None),
    ]
    assert api.changes == [("ann", "messages.produce", topic(), {"records": 4, "connection": None})]


@pytest.mark.parametrize(
    ("form", "value", "data"),
    [
        ("long", 258, bytes([0, 0, 0, 0, 0, 0, 1, 2])),
        ("json", "x", b'"x"'),
        ("bytes", "x", b"x"),
        ("uuid", ID, ID.encode()),
    ],
)
def test_records_are_written_in_a_format(
    api: Api, connection: Connection, topic: Callable[..., str], form: str, value: Any, data: bytes
) -> None:
    fill(connection, topic(), [])
    body = {"records": [{"value": value}], "format": form}
    assert api("POST", f"/topics/{topic()}/messages", json=body).status_code == 201
    assert read_all(connection, topic())[0].value == data


def test_hostile_keys_and_values_do_not_break_a_search(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    deep, digits = b"[" * 1010 + b"]" * 1010, b"9" * 5000
    values = [
        deep,
        digits,
        b'{"a":' * 1010 + b"1" + b"}" * 1010,
        b"\xef\xbb\xbf{}",
        b'{"a":1,"a":2}',
    ]
    fill(connection, topic(), values, key=lambda n: values[n])
    path = f"/topics/{topic()}/messages"
    shown = [item["value"]["form"] for item in api.get(path, order="oldest")["items"]]
    assert shown == ["text", "text", "text", "text", "json"]
    assert api.get(path, key="k")["items"] == []
    assert len(api.get(path, key="9" * 1000, value="9" * 1000)["items"]) == 0
    assert [item["offset"] for item in api.get(path, pointer="/a")["items"]] == [4]
    assert api.get(path, pointer="/0/0/0")["items"] == []
    assert api.get(path, pointer="/a", equals="[" * 900)["items"] == []
    assert api.get(path, pointer="", equals="9" * 1000)["items"] == []


DEEP = base64.urlsafe_b64encode(b"[" * 30_000).decode()


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("limit=501", 422, "query, limit: Input should be less than or equal to 500"),
        ("limit=0", 422, "query, limit"),
        ("seconds=31", 422, "query, seconds"),
        ("seconds=nan", 422, "query, seconds"),
        ("order=random", 422, "query, order: Input should be 'newest' or 'oldest'"),
        ("from=somewhere", 400, "'somewhere' is not a position; allowed: earliest"),
        ("from=99999999999999999999999", 400, "is out of range"),
        ("from=-99999999999999999999d", 400, "is out of range"),
        ("from=%C2%B2", 400, "is not a position"),
        ("from=%D9%A3", 400, "is out of range"),
        ("until=@99999999999999999999", 400, "is out of range"),
        ("partition=3", 400, "has no partition 3; it has 0 to 2"),
        ("partition=-1", 422, "query, partition"),
        ("pointer=a", 400, "is not a JSON pointer"),
        ("pointer=/~2", 400, "is not a JSON pointer"),
        ("equals=1", 400, "'equals' needs 'pointer'"),
        ("format=avrro", 400, "'avrro' is not a format; did you mean 'avro'?"),
        ("format=avro", 400, "needs a schema registry, and this server has none"),
        ("cursor=bm8=", 400, "is not a cursor"),
        ("cursor=W1swLDFdXQ==", 400, "is not a cursor of messages"),
        (f"cursor={DEEP}", 400, "is not a cursor"),
        ("vlaue=x", 400, "there is no parameter 'vlaue'; did you mean 'value'?"),
        ("isolation=none", 422, "query, isolation"),
        ("value_bytes=2000000", 422, "query, value_bytes"),
    ],
)
def test_a_wrong_question_gets_a_reason(
    api: Api, trades: str, query: str, status: int, text: str
) -> None:
    got, detail = api.refused("GET", f"/topics/{trades}/messages?{query}", role="viewer")
    assert (got, text in detail) == (status, True), detail


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"records": []}, 422, "body, records: List should have at least 1 item"),
        ({"records": [{}] * 501}, 422, "at most 500 items"),
        ({"records": [{"valeu": 1}]}, 422, "body, records.0.valeu: Extra inputs"),
        ({"records": [{"value": 1, "value_base64": "AA=="}]}, 400, "were both given"),
        ({"records": [{}, {"value_base64": "#"}]}, 400, "records[1]: value_base64 is not base64"),
        ({"records": [{"value": {"a": float("nan")}}]}, 400, "records[0]: Out of range float"),
        ({"records": [{"value": "\ud800"}]}, 400, "half of a surrogate pair"),
        ({"records": [{"headers": {"\ud800": "1"}}]}, 400, "half of a surrogate pair"),
        ({"records": [{"value": 1, "partition": 3}]}, 400, "has no partition 3; it has 0 to 2"),
        ({"records": [{"value": 1, "timestamp": 0}]}, 422, "body, records.0.timestamp"),
        ({"records": [{"value": "x" * 2_000_000}]}, 422, "1 of 1 records were not written"),
        ({"records": [{"value": "x" * 900_000}] * 10}, 413, "at most 8388608 are written"),
        ({"records": [{"value": "x"}], "format": "long"}, 400, "records[0]:"),
        ({"records": [{"value": "x"}], "format": "uuid"}, 400, "records[0]: badly formed"),
        ({"records": [{"value": "x"}], "format": "auto"}, 400, "'auto' is for reading"),
        ({"records": [{"value": "x"}], "format": "xml"}, 400, "format 'xml' is unknown"),
        ({"records": [{"value": "x"}], "format": "avro"}, 400, "needs a schema registry"),
        ({"records": [{"headers": {"a\0b": "1"}}]}, 400, "is not the name of a header"),
    ],
)
def test_a_wrong_record_is_not_written(
    api: Api, connection: Connection, trades: str, body: Any, status: int, text: str
) -> None:
    got, detail = api.refused(
        "POST", f"/topics/{trades}/messages", role="operator", content=json.dumps(body)
    )
    assert (got, text in detail) == (status, True), detail
    assert len(read_all(connection, trades)) == 12


def test_topics_that_are_missing_or_internal_are_refused(api: Api) -> None:
    body = {"records": [{"value": "x"}]}
    assert api.refused("GET", "/topics/no-such-topic/messages")[0] == 404
    assert api.refused("POST", "/topics/no-such-topic/messages", json=body)[0] == 404
    status, text = api.refused("POST", "/topics/__consumer_offsets/messages", json=body)
    assert (status, "belongs to Kafka itself" in text) == (400, True)


def test_a_viewer_does_not_write(api: Api, trades: str) -> None:
    body = {"records": [{"value": "x"}]}
    path = f"/topics/{trades}/messages"
    assert api.refused("POST", path, role="viewer", json=body)[0] == 403
