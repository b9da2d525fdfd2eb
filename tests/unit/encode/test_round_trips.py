"""CSV, Arrow, DolphinDB, JSON and primitives: what the sink writes, the decode reads as the same rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.encode.row_strategies import NAMES, SCALARS, column, plain, rows
from tests.unit.encode.shared_registry import examples

from penstock.decode.kernels.csv_kernel import CsvKernel
from penstock.decode.kernels.csv_lines import CsvDialect
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.message_kernel import arrow_kernel, dolphindb_kernel
from penstock.decode.kernels.outcome import Decoded
from penstock.decode.kernels.primitive_kernel import PrimitiveKernel
from penstock.encode.column_encodes import column_encode
from penstock.encode.format_options import FormatChoice
from penstock.encode.json_columns_text import json_encode
from penstock.encode.schema_registration import Target
from penstock.pipeline.columns import Array, Decimal, Field, Map, Scalar, Struct, Type
from penstock.pipeline.schema import Schema

NAMES_OF_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


def declared(type_: pa.DataType) -> Type:
    """Return a column's type as a definition declares it."""
    if pa.types.is_struct(type_):
        return Struct(tuple(Field(field.name, declared(field.type)) for field in type_))
    if pa.types.is_list(type_):
        return Array(declared(type_.value_type))
    if pa.types.is_map(type_):
        return Map(declared(type_.item_type))
    if pa.types.is_decimal(type_):
        return Decimal(type_.precision, type_.scale)
    return Scalar(NAMES_OF_TYPES[type_])


def schema_of(rows: pa.Array) -> Schema:
    return Schema(tuple(Field(field.name, declared(field.type)) for field in rows.type))


def written(given: Any, rows: pa.Array) -> pa.Array:
    chosen = FormatChoice.model_validate(given)
    return column_encode(chosen, rows.type, Target("orders", "value", "c"))(rows)


def rows_of(column: pa.Array) -> list[Any]:
    return [plain(row, column.type) for row in column.to_pylist()]


def assert_same(decoded: Decoded, rows: pa.Array) -> None:
    assert not decoded.failures, decoded.failures[0].message
    assert decoded.rows.num_rows == len(rows)
    assert same(rows_of(decoded.rows.to_struct_array()), rows_of(rows))


def same(left: Any, right: Any) -> bool:
    """Return whether values are equal: NaN is NaN, and -0.0 is not 0.0."""
    return repr(left) == repr(right)


FLAT = SCALARS | {pa.float32(): st.floats(width=32), pa.float64(): st.floats()}


@st.composite
def flat_rows(draw: Any, scalars: dict[pa.DataType, Any], fewest: int = 1) -> pa.Array:
    """Return rows of single values."""
    types = st.sampled_from(list(scalars))
    fields = draw(st.dictionaries(NAMES, types, min_size=fewest, max_size=5))
    row = st.fixed_dictionaries({name: st.none() | scalars[each] for name, each in fields.items()})
    return column(draw(st.lists(row, min_size=1, max_size=5)), pa.struct(list(fields.items())))


DIALECTS = st.sampled_from([{}, {"delimiter": ";", "quote": "'"}, {"delimiter": "\t", "null": "-"}])


@examples
@given(flat_rows(FLAT, fewest=2), DIALECTS)
def test_csv_comes_back(rows: pa.Array, options: dict[str, str]) -> None:
    kernel = CsvKernel(schema_of(rows), CsvDialect(**options))

    assert_same(kernel.decode(written({"csv": options}, rows)), rows)


@examples
@given(rows())
def test_arrow_comes_back(rows: pa.Array) -> None:
    assert_same(arrow_kernel(schema_of(rows)).decode(written("arrow", rows)), rows)


@examples
@given(rows())
def test_json_comes_back(rows: pa.Array) -> None:
    data = json_encode(rows.type)(rows)

    decoded, failures = JsonKernel(schema_of(rows)).decode(data)

    assert_same(Decoded(decoded, failures), rows)


# Other values stand for null, or are refused: docs/formats.md.
DOLPHINDB = SCALARS | {
    pa.int8(): st.integers(-127, 127),
    pa.int16(): st.integers(1 - 2**15, 2**15 - 1),
    pa.int32(): st.integers(1 - 2**31, 2**31 - 1),
    pa.int64(): st.integers(1 - 2**63, 2**63 - 1),
    pa.float32(): st.floats(-(2.0**99), 2.0**99, width=32),
    pa.float64(): st.floats(-1e300, 1e300),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
}


@examples
@given(flat_rows(DOLPHINDB))
def test_dolphindb_comes_back(rows: pa.Array) -> None:
    decoded = dolphindb_kernel(schema_of(rows)).decode(written("dolphindb", rows))

    empty = {pa.string(): "", pa.binary(): b""}
    columns = [
        rows.field(at).fill_null(empty[field.type]) if field.type in empty else rows.field(at)
        for at, field in enumerate(rows.type)
    ]
    assert_same(decoded, pa.StructArray.from_arrays(columns, fields=list(rows.type)))


PRIMITIVES = {
    "string": pa.string(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
}


@pytest.mark.parametrize("name", PRIMITIVES)
@examples
@given(st.data())
def test_primitives_come_back(name: str, data: Any) -> None:
    type_ = PRIMITIVES[name]
    given_ = pa.array(data.draw(st.lists(st.none() | FLAT[type_], min_size=1, max_size=5)), type_)

    decoded = PrimitiveKernel(name, "c")(pa.record_batch({"value": written(name, given_)}))

    assert_same(decoded, pa.StructArray.from_arrays([given_], ["c"]))


@examples
@given(st.lists(st.none() | st.uuids().map(str), min_size=1, max_size=5))
def test_uuids_come_back(texts: list[str | None]) -> None:
    given_ = pa.array(texts, pa.string())

    decoded = PrimitiveKernel("uuid", "c")(pa.record_batch({"value": written("uuid", given_)}))

    assert_same(decoded, pa.StructArray.from_arrays([given_], ["c"]))
