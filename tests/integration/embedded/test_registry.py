"""The schema registry takes a schema and gives it back, over Confluent's API."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

from penstock.embedded import SchemaRegistry

SCHEMA = {"type": "record", "name": "Trade", "fields": [{"name": "price", "type": "double"}]}


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body else None
    request = Request(url, data, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
    with urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def test_a_registered_schema_is_found_by_subject_and_by_id() -> None:
    with SchemaRegistry() as registry:
        assert registry.url.startswith("http://127.0.0.1:")
        assert registry.url.endswith("/apis/ccompat/v7")
        given = ask(
            f"{registry.url}/subjects/trades-value/versions", {"schema": json.dumps(SCHEMA)}
        )
        assert ask(f"{registry.url}/subjects") == ["trades-value"]
        found = ask(f"{registry.url}/schemas/ids/{given['id']}")
        assert json.loads(found["schema"]) == SCHEMA
    assert registry.children == []
