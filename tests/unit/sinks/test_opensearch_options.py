"""Wrong options of the search sink are refused, with what was given, what is allowed and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.pipeline import Pipeline
from penstock.sinks.opensearch import OpensearchSink

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "search:9200"}, "cannot be used; allowed: http://HOST/PATH"),
    ({"url": []}, "at least 1 item"),
    ({"url": "https://app:hunter2@host"}, "give the user and the password in 'auth.basic'"),
    ({"url": "http://host:9200/?pretty"}, "has parameters; give the address of a node alone"),
    ({"index": "Orders"}, "'Orders' cannot be the name of an index: it has upper-case letters"),
    ({"index": "_orders"}, "it begins with '_'"),
    ({"index": "a b"}, "it has ' '"),
    ({"index": "orders-{region"}, "has '{' alone; write columns as {name}"),
    ({"index": "orders-{at:%Q}"}, "'%Q' in 'orders-{at:%Q}' is not a part of a date; allowed: %Y"),
    ({"index": "orders-{at:}"}, "has a date without a form"),
    ({"index": "x" * 300}, "it needs 1 to 255 bytes"),
    ({"operation": "update"}, "input should be 'index', 'create', 'upsert' or 'delete'"),
    ({"operation": "upsert"}, "give its columns in 'id'"),
    ({"operation": "delete"}, "to delete documents, name them"),
    (
        {"operation": "delete", "id": "a", "value": "v"},
        "leave out 'delete_when', 'delete_null' and",
    ),
    ({"delete_when": "gone"}, "to delete documents, name them"),
    ({"delete_null": True, "id": "a"}, "'delete_null' needs the column of the document"),
    ({"version": "v"}, "'version' compares rows of one document"),
    (
        {"version": "v", "id": "a", "operation": "create"},
        "operations index and delete, given: create",
    ),
    ({"data_stream": True}, "a data stream only takes new documents: give 'operation: create'"),
    (
        {"data_stream": True, "operation": "create", "id": "a", "delete_when": "d"},
        "a data stream cannot delete documents",
    ),
    (
        {"data_stream": True, "operation": "create", "mapping": {"properties": {}}},
        "of a data stream are in its template",
    ),
    (
        {"data_stream": True, "operation": "create", "index_template": {"priority": 1}},
        "needs 'data_stream: {}' in it",
    ),
    ({"timestamp": "at", "value": "v"}, "'timestamp' and 'value' are both given"),
    (
        {"index_template": {"priority": 1}, "mapping": {"properties": {}}},
        "put them into the template",
    ),
    ({"index": "{a}-x", "settings": {"number_of_shards": 1}}, "would match every index"),
    ({"auth": {"bearer": "t", "api_key": "k"}}, "given bearer and api_key; give exactly one"),
    ({"batch_bytes": 0}, "greater than or equal to 1"),
    ({"timeout": "soon"}, "a duration is a number with ms, s, m, h or d"),
    ({"retry_time": -1}, "greater than or equal to 0"),
    ({"indx": "a"}, "did you mean 'index'?"),
]


def read(options: dict[str, Any], name: str = "opensearch", **more: Any) -> Pipeline:
    given = {"url": "http://host:9200", "index": "orders", **options}
    decode = {"json": {"schema": "n int"}}
    return Pipeline(name="orders", source={"kafka": "t"}, decode=decode, sink={name: given}, **more)


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        read(options)
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_exactly_once_is_refused_with_the_reason() -> None:
    with pytest.raises(DefinitionError, match="a repeat replaces the same documents"):
        read({}, delivery="exactly-once")


def test_it_has_the_name_elasticsearch_too() -> None:
    sink = read({"auth": {"api_key": "VGhlLUtleQ=="}}, "elasticsearch").sink
    assert isinstance(sink, OpensearchSink)
    assert sink.auth is not None
    assert sink.auth.chosen.header == "Authorization"
    assert sink.auth.chosen.secret.get_secret_value() == "ApiKey VGhlLUtleQ=="
    assert "VGhlLUtleQ==" not in repr(sink) + str(sink.model_dump())
