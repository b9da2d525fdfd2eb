"""Transforms, predicates and converters are plugins of the API, and warnings are given on request."""

from __future__ import annotations

from collections import Counter
from typing import Any

from penstock.connect.connectors import CATALOG
from penstock.server.connect import plugin_replies

SINK = {"connector.class": "FileStreamSink", "name": "a", "topics": "a", "file": "b", "flie": "c"}


def test_all_plugins_are_listed_by_their_kinds() -> None:
    listed = plugin_replies.all_plugins(CATALOG)
    counted = Counter(each["type"] for each in listed)
    assert (counted["transformation"], counted["predicate"]) == (26, 3)
    assert (counted["converter"], counted["header_converter"]) == (12, 10)
    json = "org.apache.kafka.connect.json.JsonConverter"
    found = [each["type"] for each in listed if each["class"] == json]
    assert found == ["converter", "header_converter"]


def test_their_keys_are_described() -> None:
    def names(plugin: str) -> list[Any]:
        return [each["name"] for each in plugin_replies.keys(CATALOG, plugin)]

    assert names("org.apache.kafka.connect.transforms.RegexRouter") == ["regex", "replacement"]
    assert names("TopicNameMatches") == ["pattern"]
    assert names("JsonConverter")[:2] == ["converter.type", "schemas.enable"]


def test_warnings_are_in_a_check_only_where_they_are_asked_for() -> None:
    plain = plugin_replies.validated(CATALOG, "FileStreamSink", SINK)
    assert plain.keys() == {"name", "error_count", "groups", "configs"}
    found = plugin_replies.validated(CATALOG, "FileStreamSink", SINK, with_warnings=True)
    text = "flie is not known to this connector, and has no effect; did you mean 'file'?"
    assert found["warnings"] == [{"name": "flie", "text": text}]
