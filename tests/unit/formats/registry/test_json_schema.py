"""JSON is checked against its schema when it is written and when it is read, and nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError, FormatError
from penstock.formats.json_schema import JsonSchema
from penstock.formats.registry import Reference, Schema

New = Callable[[], Any]

TRADE = {
    "title": "Trade",
    "type": "object",
    "properties": {"price": {"type": "number"}, "day": {"type": "string"}},
    "required": ["price"],
    "additionalProperties": False,
}


def test_a_value_comes_back_and_dates_and_decimals_are_texts(new_registry: New) -> None:
    form = JsonSchema(new_registry(), TRADE)

    data = form.encode({"price": 1.5, "day": date(2026, 1, 2)}, "t")

    assert data == b'\0\0\0\0\1{"price":1.5,"day":"2026-01-02"}'
    assert form.decode(data, "t") == {"price": 1.5, "day": "2026-01-02"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, "$: 'price' is a required property"),
        ({"price": "x"}, "$.price: 'x' is not of type 'number'"),
        ({"price": float("nan")}, "$.price: None is not of type 'number'"),
        ({"price": Decimal("1.5")}, "$.price: '1.5' is not of type 'number'"),
        ({"price": 1, "other": 2}, "'other' was unexpected"),
        ({"price": object()}, "object"),
        ({"price": 2**70}, "64-bit"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_the_place_and_the_reason(
    new_registry: New, value: Any, reason: str
) -> None:
    with pytest.raises(FormatError) as caught:
        JsonSchema(new_registry(), TRADE).encode(value, "t")

    assert reason in str(caught.value)
    assert "subject 't-value'" in str(caught.value)


def test_what_is_read_must_fit_the_schema_that_it_was_written_with(new_registry: New) -> None:
    registry = new_registry()
    JsonSchema(registry, TRADE).encode({"price": 1}, "t")

    with pytest.raises(FormatError, match=r"schema 1 in topic 't': \$: 'price' is a required"):
        JsonSchema(registry).decode(b"\0\0\0\0\1{}", "t")


def test_what_is_read_must_fit_the_readers_schema_where_there_is_one(new_registry: New) -> None:
    registry = new_registry()
    data = JsonSchema(registry, TRADE).encode({"price": 1}, "t")
    stricter = {**TRADE, "required": ["price", "day"]}
    looser = {"type": "object"}

    assert JsonSchema(registry, looser).decode(data, "t") == {"price": 1}
    with pytest.raises(FormatError, match="'day' is a required property"):
        JsonSchema(registry, stricter).decode(data, "t")


def test_a_schema_may_refer_to_others_in_the_registry(new_registry: New) -> None:
    registry = new_registry()
    registry.register("money", Schema('{"type": "integer"}', "JSON"))
    order = Schema(
        json.dumps({"properties": {"total": {"$ref": "money.json"}}}),
        "JSON",
        (Reference("money.json", "money", 1),),
    )
    form = JsonSchema(registry, order)

    assert form.decode(form.encode({"total": 5}, "t"), "t") == {"total": 5}
    with pytest.raises(FormatError, match=r"\$\.total: 'x' is not of type 'integer'"):
        form.encode({"total": "x"}, "t")


def test_a_reference_outside_the_registry_is_not_fetched(
    new_registry: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    form = JsonSchema(new_registry(), {"$ref": "http://127.0.0.1:1/schema.json"})

    with pytest.raises(FormatError, match="which is not among its references"):
        form.encode({}, "t")


@pytest.mark.parametrize("schema", ["{", {"type": "recrd"}, '"x"', "[]"])
def test_a_text_that_is_no_schema_is_refused_when_the_format_is_made(
    new_registry: New, schema: Any
) -> None:
    with pytest.raises(ConfigError, match=r"not a (valid )?JSON Schema"):
        JsonSchema(new_registry(), schema)


def test_the_title_is_the_name_of_the_record(new_registry: New) -> None:
    assert JsonSchema(new_registry(), TRADE, subject="record").subject_for("t") == "Trade"
    with pytest.raises(ConfigError, match='needs a JSON Schema with a "title"'):
        JsonSchema(new_registry(), {"type": "object"}, subject="record").subject_for("t")


def test_json_that_nests_without_an_end_is_refused(new_registry: New) -> None:
    form = JsonSchema(new_registry(), {"items": {"$ref": "#"}})
    form.encode([], "t")

    for depth in (900, 100_000):
        with pytest.raises(FormatError, match=r"recursion|nested|not JSON|JSON beyond"):
            form.decode(b"\0\0\0\0\1" + b"[" * depth + b"]" * depth, "t")


@pytest.fixture(scope="module")
def anything(new_registry: New) -> JsonSchema:
    form = JsonSchema(new_registry(), {"type": "object", "additionalProperties": {"type": "array"}})
    form.encode({}, "t")
    return form


text = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | text
plain = plain | st.floats(allow_nan=False, allow_infinity=False)


@given(st.dictionaries(text, st.lists(plain)))
def test_any_value_comes_back(anything: JsonSchema, value: Any) -> None:
    assert anything.decode(anything.encode(value, "t"), "t") == value


@given(st.binary(max_size=64) | text.map(str.encode) | plain.map(lambda v: json.dumps(v).encode()))
def test_random_bytes_give_a_format_error_and_nothing_else(
    anything: JsonSchema, body: bytes
) -> None:
    for data in (body, b"\0\0\0\0\1" + body):
        try:
            found = anything.decode(data, "t")
        except FormatError:
            continue
        assert all(isinstance(item, list) for item in found.values())
