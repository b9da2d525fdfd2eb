"""Keys and values of the converters with a registry are written and read back, single values as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.decode.connect_registered import registered_part
from penstock.decode.kernels.connect.envelopes import Origins
from penstock.embedded import SchemaRegistry
from penstock.encode.connect_encodes import converter_encode
from penstock.encode.schema_registration import Target
from penstock.errors import ConfigError
from penstock.formats.connect import INT64, STRING, Schema, SchemaBuilder, decimal
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.converter_options import ConverterOptions

ORDER = (
    SchemaBuilder.struct("shop.Order").field("id", INT64).field("note", STRING.or_null()).build()
)
ROWS = [{"id": 1, "note": "é"}, None, {"id": 2, "note": None}]


def written_and_read(
    registry: SchemaRegistry, topic: str, form: str, schema: Schema, rows: list[Any], part: str
) -> tuple[Schema, list[Any], list[str]]:
    options = ConverterOptions(form=form, registry=registry.url)
    encode = converter_encode(options, schema, Target(topic, part))
    data = encode(pa.array(rows, arrow_type(schema)))
    found, make, _ = registered_part(options, part, [topic], evolves=True)
    given = pa.concat_arrays([data, pa.array([b"x", b"\0\0\0\0\1"], pa.binary())])
    count = pa.array(range(len(given)))
    made = make()(given, Origins(count, count, count))
    messages = [each.message for each in made.failures if each.index >= len(rows)]
    assert len(made.failures) == len(messages)
    return found, made.values.to_pylist()[: len(rows)], messages


@pytest.mark.parametrize("form", ["avro", "protobuf", "json_schema"])
def test_structs(schema_registry: SchemaRegistry, topic: Callable[..., str], form: str) -> None:
    found, rows, bad = written_and_read(schema_registry, topic(form), form, ORDER, ROWS, "value")
    assert [row and row["id"] for row in rows] == [1, None, 2]
    assert rows[0]["note"] == "é"
    assert rows[1] is None
    assert bad
    assert [each.name for each in found.fields] == ["id", "note"]
    if form == "avro":
        assert found.name == "shop.Order"


@pytest.mark.parametrize(
    ("schema", "rows"),
    [(STRING, ["a", None, ""]), (INT64, [1, -(2**63), None]), (decimal(2), [None])],
    ids=["string", "int64", "decimal"],
)
def test_single_values_of_avro(
    schema_registry: SchemaRegistry, topic: Callable[..., str], schema: Schema, rows: list[Any]
) -> None:
    found, read, bad = written_and_read(
        schema_registry, topic("single"), "avro", schema, rows, "key"
    )
    assert (found.type, read) == (schema.type, rows)
    assert bad


def test_several_topics_have_no_common_subject(schema_registry: SchemaRegistry) -> None:
    options = ConverterOptions(form="avro", registry=schema_registry.url)
    with pytest.raises(ConfigError, match="one connector for each topic"):
        registered_part(options, "value", ["a", "b"], evolves=True)
