"""Formats with a registry: what is registered, under which name, and what is refused before any row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from pyspark import cloudpickle
from tests.unit.formats.registry.conftest import MemoryRegistry

from penstock.encode.column_encodes import column_encode
from penstock.encode.format_options import FormatChoice
from penstock.encode.schema_registration import Target
from penstock.errors import ConfigError, RefusedError, TransientError
from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.http import RefusedError as HttpRefusal
from penstock.formats.registry.registry_options import RegistryOptions

ROWS = pa.array([{"id": 1, "name": "tea"}, {"id": None, "name": None}])
VALUE = Target("orders", "value")


class MissingSubjects(MemoryRegistry):
    """Answers for a subject without versions as the real client does."""

    def latest(self, subject: str, form: str = "") -> Any:
        self._ask_memory()
        versions = [each for each in self.kept if each.subject == subject]
        if not versions:
            raise ConfigError("no such subject") from HttpRefusal(404, "no such subject")
        return versions[-1]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryRegistry]:
    made = MissingSubjects()
    monkeypatch.setattr(RegistryOptions, "fresh_client", lambda _: made)
    yield made


def chosen(format_name: str, **options: Any) -> FormatChoice:
    return FormatChoice.model_validate({format_name: {"registry": "http://memory", **options}})


def read(registry: Registry, name: str, data: bytes) -> Any:
    if name == "avro":
        return Avro(registry).decode(data)
    if name == "json_schema":
        return JsonSchema(registry).decode(data)
    message = Protobuf(registry).decode(data)
    fields = message.DESCRIPTOR.fields
    return {f.name: getattr(message, f.name) if message.HasField(f.name) else None for f in fields}


REGISTERED = pytest.mark.parametrize("name", ["avro", "protobuf", "json_schema"])


@REGISTERED
def test_a_derived_schema_is_registered_and_the_client_reads_the_rows(
    registry: MemoryRegistry, name: str
) -> None:
    encode = column_encode(chosen(name), ROWS.type, VALUE)

    assert [each.subject for each in registry.kept] == ["orders-value"]
    assert [read(registry, name, data) for data in encode(ROWS).to_pylist()] == ROWS.to_pylist()


@REGISTERED
def test_workers_get_encodes_that_need_no_registry(registry: MemoryRegistry, name: str) -> None:
    encode = column_encode(chosen(name), ROWS.type, VALUE)
    asked = registry.asked

    in_worker = cloudpickle.loads(cloudpickle.dumps(encode))

    assert in_worker(ROWS) == encode(ROWS)
    assert registry.asked == asked


@REGISTERED
@pytest.mark.parametrize(
    ("subject", "expected"), [("record", "shop.Order"), ("topic-record", "orders-shop.Order")]
)
def test_subjects_by_the_name_of_the_record(
    registry: MemoryRegistry, name: str, subject: str, expected: str
) -> None:
    column_encode(chosen(name, subject=subject, name="shop.Order"), ROWS.type, VALUE)

    assert [each.subject for each in registry.kept] == [expected]


@REGISTERED
def test_a_registry_that_is_away_is_transient(registry: MemoryRegistry, name: str) -> None:
    registry.away = True

    with pytest.raises(TransientError):
        column_encode(chosen(name), ROWS.type, VALUE)


@REGISTERED
def test_the_latest_schema_is_used_and_nothing_is_registered(
    registry: MemoryRegistry, name: str
) -> None:
    column_encode(chosen(name), ROWS.type, VALUE)

    encode = column_encode(chosen(name, use_latest=True), ROWS.type, VALUE)

    assert len(registry.kept) == 1
    assert [read(registry, name, data) for data in encode(ROWS).to_pylist()] == ROWS.to_pylist()


@REGISTERED
def test_a_schema_that_must_exist_is_not_registered(registry: MemoryRegistry, name: str) -> None:
    with pytest.raises(ConfigError, match="not registered"):
        column_encode(chosen(name, register=False), ROWS.type, VALUE)

    assert registry.kept == []


def test_a_null_stays_null_and_a_key_is_one_column(registry: MemoryRegistry) -> None:
    key = pa.array([5, None])
    encode = column_encode(chosen("avro"), key.type, Target("orders", "key", "id"))

    assert encode(key).to_pylist() == [b"\0\0\0\0\1\n", None]
    assert [each.subject for each in registry.kept] == ["orders-key"]


def test_nothing_is_registered_when_a_column_does_not_fit(registry: MemoryRegistry) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}

    with pytest.raises(ConfigError, match="no field for the column 'name'"):
        column_encode(chosen("avro", schema=schema), ROWS.type, VALUE)
    assert registry.kept == []


def test_a_derived_message_keeps_the_numbers_of_the_registered_one(
    registry: MemoryRegistry,
) -> None:
    column_encode(chosen("protobuf"), ROWS.type, VALUE)
    wider = pa.array([{"at": 7, "id": 1, "name": "tea"}])

    (data,) = column_encode(chosen("protobuf"), wider.type, VALUE)(wider).to_pylist()

    fields = Protobuf(registry).decode(data).DESCRIPTOR.fields
    assert {field.name: field.number for field in fields} == {"id": 1, "name": 2, "at": 3}


ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 1}, "name": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}


def test_rows_are_compared_with_a_given_json_schema(registry: MemoryRegistry) -> None:
    rows = pa.array([{"id": 1, "name": None}], ROWS.type)
    encode = column_encode(chosen("json_schema", schema=ORDER), rows.type, VALUE)

    assert encode(rows).to_pylist() == [b'\0\0\0\0\1{"id":1}']
    with pytest.raises(RefusedError, match=r"\$\.id: 0 is less than the minimum of 1"):
        encode(pa.array([{"id": 0, "name": "x"}]))


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pa.struct({"id": pa.int64(), "nam": pa.string()}), "no property for the column 'nam'"),
        (pa.struct({"name": pa.string()}), "requires 'id'"),
    ],
)
def test_columns_are_compared_with_a_given_json_schema(
    registry: MemoryRegistry, type_: pa.DataType, text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        column_encode(chosen("json_schema", schema=ORDER), type_, VALUE)


def test_the_latest_schema_must_be_of_the_format(registry: MemoryRegistry) -> None:
    registry.register("orders-value", Schema(json.dumps(ORDER), "JSON"))

    with pytest.raises(ConfigError, match="is JSON, and the format is AVRO"):
        column_encode(chosen("avro", use_latest=True), ROWS.type, VALUE)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("avor", "unknown format 'avor'; did you mean 'avro'"),
        ("avro", "registry"),
        ({"long": {"width": 8}}, "the format 'long' has no options"),
        ({"avro": {}, "csv": {}}, "a format is a name"),
        ({"csv": {"delimiter": ";;"}}, "delimiter"),
        ({"csv": {"delimiter": "'", "quote": "'"}}, "two different characters"),
        ({"csv": {"quote": "\n"}}, "two different characters"),
        ({"csv": {"delimiter": ";", "null": "a;b"}}, "null contains the delimiter"),
        (
            {"avro": {"registry": "http://r", "schema": "{}", "use_latest": True}},
            "give one of schema, schema_file and use_latest",
        ),
        (
            {"avro": {"registry": "http://r", "subject": "record", "use_latest": True}},
            "needs the record's name",
        ),
    ],
)
def test_a_wrong_format_is_refused_with_its_definition(given: Any, text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        FormatChoice.model_validate(given)


@pytest.mark.parametrize(
    "given",
    ["json", "long", {"csv": {"delimiter": ";", "quote": "'", "null": "-"}}],
)
def test_a_format_is_written_as_it_was_given(given: Any) -> None:
    assert FormatChoice.model_validate(given).model_dump() == given


def test_a_stored_format_is_the_same_when_it_is_read_again() -> None:
    given = chosen("avro", schema="{}", register=False)

    stored = given.model_dump(mode="json")

    assert FormatChoice.model_validate(stored) == given
