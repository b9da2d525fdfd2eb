"""Bulk requests to a real search server: every operation, what is refused, and a server that is busy."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.services.json_api import Answer, JsonApi, Seen
from tests.services.opensearch import OpenSearch

from penstock.errors import ConfigError, TransientError
from penstock.pipeline import ORIGIN
from penstock.sinks.messages import Refusal
from penstock.sinks.opensearch.bulk_outlet import BulkOptions
from penstock.sinks.opensearch.bulk_rows import BulkForm
from penstock.sinks.opensearch.index_setup import make_index
from penstock.sinks.opensearch.search_nodes import NodeOptions


def options(url: str, index: str, operation: str = "index", **form: Any) -> BulkOptions:
    made = {"operation": operation, "index_prefix": index, "fixed_index": True}
    nodes = NodeOptions((url,), None, None, 30.0, False)
    return BulkOptions(
        nodes, BulkForm(**{**made, "checks_documents": False, **form}), False, 5 * 2**20, 5.0
    )


def rows(documents: list[Any], **columns: Any) -> pa.RecordBatch:
    """Rows with an ORIGIN each, as tasks get them."""
    texts = [d if d is None or isinstance(d, bytes) else json.dumps(d).encode() for d in documents]
    count = len(documents)
    given = {
        "document": pa.array(texts, pa.binary()),
        **columns,
        ORIGIN[0]: ["orders"] * count,
        ORIGIN[1]: pa.array([0] * count, pa.int32()),
        ORIGIN[2]: pa.array(range(count), pa.int64()),
    }
    return pa.RecordBatch.from_pydict(given)


def send(given: BulkOptions, *batches: pa.RecordBatch) -> list[Refusal]:
    with given.open() as outlet:
        return [refusal for batch in batches for refusal in outlet.send(batch)]


def test_ids_are_places_and_a_repeat_changes_nothing(opensearch: OpenSearch, unique: str) -> None:
    batch = rows([{"n": n} for n in range(50)])
    for _ in range(2):
        assert send(options(opensearch.url, unique), batch) == []
    found = opensearch.documents(unique)
    assert found == {f"orders-0-{n}": {"n": n} for n in range(50)}


def test_create_leaves_what_exists_as_it_is(opensearch: OpenSearch, unique: str) -> None:
    given = options(opensearch.url, unique, "create")
    assert send(given, rows([{"n": 1}, {"n": 2}])) == []
    assert send(given, rows([{"n": 9}, {"n": 2}, {"n": 3}])) == []
    assert [d["n"] for d in opensearch.documents(unique).values()] == [1, 2, 3]


def test_rows_of_one_document_are_written_in_their_order(
    opensearch: OpenSearch, unique: str
) -> None:
    batch = rows([{"n": n} for n in range(1000)], id=[f"k{n % 3}" for n in range(1000)])
    assert send(options(opensearch.url, unique), batch) == []
    found = opensearch.documents(unique)
    assert found == {"k0": {"n": 999}, "k1": {"n": 997}, "k2": {"n": 998}}


def test_upserts_change_the_fields_that_they_have(opensearch: OpenSearch, unique: str) -> None:
    given = options(opensearch.url, unique, "upsert", checks_documents=True)
    assert send(given, rows([{"a": 1, "b": 1}], id=["k"])) == []
    assert send(given, rows([{"b": 2}], id=["k"])) == []
    assert opensearch.documents(unique) == {"k": {"a": 1, "b": 2}}


def test_rows_delete_documents_and_what_is_gone_is_no_problem(
    opensearch: OpenSearch, unique: str
) -> None:
    missing = rows([None], id=["x"], deleted=[True])
    assert send(options(opensearch.url, unique), missing) == []
    ids, deleted = ["a", "b", "c", "a", "c"], [False, False, None, True, True]
    batch = rows([{"n": 1}, {"n": 2}, {"n": 3}, None, {"n": 4}], id=ids, deleted=deleted)
    assert send(options(opensearch.url, unique), batch) == []
    assert opensearch.documents(unique) == {"b": {"n": 2}}
    only_ids = rows([None], id=["b"]).drop_columns(["document"])
    assert send(options(opensearch.url, unique, "delete"), only_ids, only_ids) == []
    assert opensearch.documents(unique) == {}


def test_an_older_version_is_ignored(opensearch: OpenSearch, unique: str) -> None:
    given = options(opensearch.url, unique)
    assert send(given, rows([{"n": 5}], id=["k"], version=[5])) == []
    older = rows([{"n": 4}, {"n": 5}, {"n": 1}], id=["k", "k", "j"], version=[4, 5, 1])
    assert send(given, older) == []
    assert opensearch.documents(unique) == {"k": {"n": 5}, "j": {"n": 1}}
    assert send(given, rows([None], id=["k"], version=[6], deleted=[True])) == []
    assert send(given, rows([{"n": 5}], id=["k"], version=[5])) == []
    assert opensearch.documents(unique) == {"j": {"n": 1}}


def test_each_row_that_the_server_refuses_is_named_with_its_reason(
    opensearch: OpenSearch, unique: str
) -> None:
    given = options(opensearch.url, unique)
    with given.nodes.connect() as nodes:
        make_index(nodes, unique, {"properties": {"n": {"type": "integer"}}}, {})
    refused = send(given, rows([{"n": 1}, {"n": "many"}, {"n": 3}, {"n": {"x": 1}}, {"n": 5}]))
    assert [(each.row, each.error_type) for each in refused] == [
        (1, "mapper_parsing_exception"),
        (3, "mapper_parsing_exception"),
    ]
    assert "failed to parse field [n] of type [integer]" in refused[0].error
    assert "number_format_exception" in refused[0].error
    assert [d["n"] for d in opensearch.documents(unique).values()] == [1, 3, 5]


HOSTILE = [
    b'{"n":1}\n{"delete":{"_id":"orders-0-0"}}',
    b'{"n":1},"script":{"source":"ctx._source.n=9"}',
    b'{"n":1}}',
    b"",
    b"null",
    b"[1]",
    b"\xff\xfe",
    b'{"n":' * 3000,
    b'{"n": NaN}',
    b'{"\xff": 1}',
]


@pytest.mark.parametrize("operation", ["index", "create", "upsert"])
def test_hostile_values_are_refused_alone(
    opensearch: OpenSearch, unique: str, operation: str
) -> None:
    given = options(opensearch.url, unique, operation, checks_documents=True)
    documents = [{"n": 0}, *HOSTILE, b'{"n":\n 7 \r\n}', {"n": 8}]
    ids = [f"{n}" for n in range(len(documents))]
    refused = send(given, rows(documents, id=ids))
    assert [each.row for each in refused] == [*range(1, len(HOSTILE) + 1)]
    assert [d["n"] for d in opensearch.documents(unique).values()] == [0, 7, 8]


def test_ids_of_every_kind(opensearch: OpenSearch, unique: str) -> None:
    ids = ["a", 'quo"te', "back\\slash", "new\nline", "ünï", "\x00", "x" * 512, "ü" * 257, "", None]
    refused = send(options(opensearch.url, unique), rows([{"n": 1}] * len(ids), id=ids))
    assert [(each.row, each.error_type) for each in sorted(refused)] == [
        (7, "long_id"),
        (8, "no_id"),
        (9, "no_id"),
    ]
    assert opensearch.documents(unique).keys() == set(ids[:7])


def test_indexes_are_those_of_the_rows_and_wrong_names_are_refused(
    opensearch: OpenSearch, unique: str
) -> None:
    names = [f"{unique}-a", f"{unique}-b", ".tasks", "a/b", "_all", None, "x" * 256, f"{unique}-*"]
    given = options(opensearch.url, "", fixed_index=False)
    refused = send(given, rows([{"n": n} for n in range(len(names))], index=names))
    assert [each.row for each in refused] == [2, 3, 4, 5, 6, 7]
    assert {each.error_type for each in refused} == {"invalid_index_name"}
    assert opensearch.documents(f"{unique}-a") == {"orders-0-0": {"n": 0}}
    assert opensearch.documents(f"{unique}-b") == {"orders-0-1": {"n": 1}}


def test_requests_that_are_too_large_are_divided_and_a_document_is_refused(
    opensearch: OpenSearch, unique: str
) -> None:
    large = [{"n": n, "text": "x" * 200_000} for n in range(12)]
    large[5]["text"] = "x" * 1_500_000
    refused = send(options(opensearch.url, unique), rows(large))
    assert [(each.row, each.error_type) for each in refused] == [(5, "too_large")]
    assert "larger than the server accepts" in refused[0].error
    assert opensearch.count(unique) == 11


def test_a_busy_server_is_asked_again_until_it_has_everything(
    opensearch: OpenSearch, unique: str
) -> None:
    def write(task: int) -> list[Refusal]:
        given = replace(options(opensearch.url, unique), batch_bytes=900_000, patience=60.0)
        texts = [{"task": task, "text": f"{n:0100000}"} for n in range(40)]
        return send(given, rows(texts, id=[f"{task}-{n}" for n in range(40)]))

    with ThreadPoolExecutor(6) as threads:
        assert [*threads.map(write, range(6))] == [[]] * 6
    assert opensearch.count(unique) == 240
    stats = opensearch.ask("GET", "/_nodes/stats/indexing_pressure")["nodes"]
    (node,) = stats.values()
    assert node["indexing_pressure"]["memory"]["total"]["coordinating_rejections"] > 0


def busy(*rounds: dict[int, int]) -> tuple[JsonApi, list[list[str]]]:
    """A server that replies in each round with these statuses for these rows, then with success."""
    seen: list[list[str]] = []

    def respond(request: Seen) -> Any:
        actions = [json.loads(line) for line in request.body.splitlines()[::2]]
        seen.append([next(iter(action.values()))["_id"] for action in actions])
        statuses = rounds[len(seen) - 1] if len(seen) <= len(rounds) else {}
        items = []
        for row in range(len(actions)):
            status = statuses.get(row, 201)
            error = {"error": {"type": "rejected", "reason": "busy"}} if status > 201 else {}
            items.append({"index": {"status": status, **error}})
        return {"errors": bool(statuses), "items": items}

    return JsonApi(respond), seen


def test_only_what_a_busy_server_did_not_take_is_sent_again_and_later_rows_of_it() -> None:
    api, seen = busy({1: 429, 4: 400}, {0: 503})
    with api:
        ids = ["a", "b", "c", "b", "b"]
        refused = send(options(api.url, "x"), rows([{"n": n} for n in range(5)], id=ids))
    assert seen == [["a", "b", "c", "b", "b"], ["b", "b"], ["b", "b"]]
    assert [(each.row, each.error) for each in refused] == [(4, "rejected: busy")]


def test_a_server_that_stays_busy_is_left_alone_for_the_time_that_it_asks_for() -> None:
    with JsonApi(lambda _: Answer(b"slow down", 429, {"Retry-After": "17"})) as api:
        with pytest.raises(TransientError, match="slow down") as raised:
            send(options(api.url, "x"), rows([{"n": 1}]))
        assert raised.value.retry_after == 17
        assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (503, TransientError, "is away or busy"),
        (502, TransientError, "is away or busy"),
        (401, ConfigError, "refuses the credentials; check 'auth'"),
        (403, ConfigError, "this user may not do that"),
        (404, ConfigError, "does not accept bulk requests; check 'url'"),
        (302, ConfigError, "does not accept bulk requests; check 'url'"),
        (200, ConfigError, "is not the reply of a search server; check 'url'"),
    ],
)
def test_what_a_status_of_the_whole_request_means(
    status: int, error: type[Exception], message: str
) -> None:
    reply = Answer(b"<html>", status, {"Location": "http://elsewhere.example/"})
    with JsonApi(lambda _: reply) as api, pytest.raises(error, match=message):
        send(options(api.url, "x"), rows([{"n": 1}]))


def test_an_index_that_accepts_nothing_now_is_waited_for(
    opensearch: OpenSearch, unique: str
) -> None:
    opensearch.ask("PUT", f"/{unique}", {"settings": {"index.blocks.write": True}})
    with pytest.raises(TransientError, match="does not accept rows now: cluster_block_exception"):
        send(options(opensearch.url, unique), rows([{"n": 1}]))
    opensearch.ask("PUT", f"/{unique}-closed")
    opensearch.ask("POST", f"/{unique}-closed/_close")
    with pytest.raises(TransientError, match="index_closed_exception"):
        send(options(opensearch.url, f"{unique}-closed"), rows([{"n": 1}]))


def test_an_index_that_may_not_be_made_is_a_wrong_setting(
    opensearch: OpenSearch, unique: str
) -> None:
    allow = "action.auto_create_index"
    opensearch.ask("PUT", "/_cluster/settings", {"transient": {allow: f"-{unique},+*"}})
    try:
        with pytest.raises(
            ConfigError, match=r"has no such index and may not make it.*action\.auto"
        ):
            send(options(opensearch.url, unique), rows([{"n": 1}]))
    finally:
        opensearch.ask("PUT", "/_cluster/settings", {"transient": {allow: None}})


def test_the_next_node_is_asked_when_one_is_away(opensearch: OpenSearch, unique: str) -> None:
    given = options(opensearch.url, unique)
    dead = "http://127.0.0.1:9"
    for urls in ((dead, opensearch.url), (opensearch.url, dead)):
        nodes = replace(given.nodes, urls=urls, compressed=True)
        assert send(replace(given, nodes=nodes), rows([{"n": 1}, {"n": 2}])) == []
    assert opensearch.count(unique) == 2
    with pytest.raises(TransientError, match="cannot be reached"):
        send(replace(given, nodes=replace(given.nodes, urls=(dead,))), rows([{"n": 1}]))
