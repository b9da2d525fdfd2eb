"""How JsonConverter writes a schema's values: the type in which JSON is read, and the way to the column.

Dates and times are numbers in JSON, decimals are base64 or numbers, maps with other keys than text are
lists of pairs. The JSON kernel reads what JSON has; a conversion of whole Arrow columns does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.bulk_text import bulk_decimal
from penstock.decode.kernels.text_kernel import read_base64, read_decimal
from penstock.encode.column_bytes import pairs_of
from penstock.formats.connect.arrow_types import MOST_DIGITS, arrow_type
from penstock.formats.connect.json_values import logical_name, scale_of
from penstock.formats.connect.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from penstock.pipeline import columns
from penstock.pipeline.spark_years import days_in_years, moments_in_years

Convert = Callable[[pa.Array], pa.Array]
_NAMES = {
    Type.INT8: "tinyint",
    Type.INT16: "smallint",
    Type.INT32: "int",
    Type.INT64: "bigint",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "binary",
}
_REALS = (Type.FLOAT32, Type.FLOAT64)
_WORDS = {f'"{word}"': float(word) for word in ("NaN", "Infinity", "-Infinity")}
_DAY = 86_400_000
_MOST = 10**MOST_DIGITS
_pair = msgspec.json.Decoder(tuple[msgspec.Raw, msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode


class How(NamedTuple):
    """How payloads are read: whether defaults replace nulls, and whether NaN and Infinity are texts."""

    replace_null: bool = True
    quoted_reals: bool = False


@dataclass(frozen=True)
class Wire:
    """The type in JSON, and the conversion to the column's; a value that does not fit raises."""

    type: columns.Type
    convert: Convert


def wire_of(schema: Schema, how: How) -> Wire:
    """Return how values of a schema are read; a null becomes the default where that is wanted.

    >>> from penstock.formats.connect import timestamp
    >>> wire = wire_of(timestamp(), How())
    >>> wire.type.ddl(), wire.convert(pa.array([1], pa.int64())).to_pylist()[0].isoformat()
    ('bigint', '1970-01-01T00:00:00.001000+00:00')
    """
    wire = _wire(schema, how)
    if not (how.replace_null and schema.default is not None):
        return wire
    default = pa.array([schema.default], arrow_type(schema))
    return Wire(wire.type, lambda column: with_default(wire.convert(column), default))


def is_required(schema: Schema, how: How) -> bool:
    """Return whether a null of a schema is an error."""
    return not schema.optional and not (how.replace_null and schema.default is not None)


def with_default(column: pa.Array, default: pa.Array) -> pa.Array:
    """Return a column with a value, an array of one, in place of its nulls."""
    if not column.null_count:
        return column
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    places = np.where(nulls, len(column), np.arange(len(column)))
    return pa.concat_arrays([column, default]).take(pa.array(places))


def _wire(schema: Schema, how: How) -> Wire:
    match schema.type:
        case Type.STRUCT:
            return _struct(schema, how)
        case Type.ARRAY:
            return _array(schema, how)
        case Type.MAP:
            return _map(schema, how)
    kind = logical_name(schema)
    if kind == DECIMAL:
        return Wire(columns.JsonText(), partial(_decimals, scale=scale_of(schema)))
    if how.quoted_reals and schema.type in _REALS:
        return Wire(columns.JsonText(), partial(_quoted_reals, type_=arrow_type(schema)))
    logical: dict[str, Convert] = {DATE: _dates, TIME: _times, TIMESTAMP: _moments}
    return Wire(columns.Scalar(_NAMES[schema.type]), logical.get(kind or "", _same))


def _same(column: pa.Array) -> pa.Array:
    return column


def has_reals(schema: Schema) -> bool:
    """Return whether a schema has floating-point numbers anywhere.

    >>> from penstock.formats.connect import FLOAT64, SchemaBuilder
    >>> has_reals(SchemaBuilder.array(FLOAT64).build())
    True
    """
    inner = [each.schema for each in schema.fields]
    inner += [each for each in (schema.keys, schema.values) if each is not None]
    return schema.type in _REALS or any(map(has_reals, inner))


def _quoted_reals(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return numbers of JSON texts, of which Jackson writes three in quotation marks."""
    given = column.to_pylist()
    values = [None if text is None else _WORDS.get(text) or _json_number(text) for text in given]
    return pa.array(values, type_)


def _json_number(text: str) -> float:
    if text[:1] not in "-0123456789":
        raise ValueError(f"found {text:.40}, and a number is expected")
    return float(text)


def _dates(column: pa.Array) -> pa.Array:
    return days_in_years(column.cast(pa.date32()))


def _times(column: pa.Array) -> pa.Array:
    if pc.any(pc.or_(pc.less(column, 0), pc.greater(column, _DAY))).as_py():
        raise ValueError(f"a time of the day is 0 to {_DAY} milliseconds")
    return column


def _moments(column: pa.Array) -> pa.Array:
    micros = pc.multiply_checked(column, 1000)
    return moments_in_years(micros.cast(pa.timestamp("us", tz="UTC")))


def _decimals(column: pa.Array, scale: int) -> pa.Array:
    target = pa.decimal128(MOST_DIGITS, scale)
    quoted = pc.starts_with(column, '"')
    if not pc.any(quoted).as_py():
        return _numbers(column, scale)
    if pc.all(quoted).as_py():
        return _unscaled(column, target)
    nothing = pa.scalar(None, pa.string())
    first = _unscaled(pc.if_else(quoted, column, nothing), target)
    return pc.coalesce(first, _numbers(pc.if_else(quoted, nothing, column), scale))


def _numbers(texts: pa.Array, scale: int) -> pa.Array:
    wanted = columns.Decimal(MOST_DIGITS, scale)
    try:
        return bulk_decimal(wanted)(texts)
    except (ValueError, pa.ArrowException):
        values = [_number(each, scale) for each in texts.to_pylist()]
        return pa.array(values, pa.decimal128(MOST_DIGITS, scale))


def _number(text: str | None, scale: int) -> Any:
    if text is None:
        return None
    if text[:1] not in "-0123456789":
        raise ValueError("a decimal is a number, or base64 of its digits")
    return read_decimal(text, MOST_DIGITS, scale)


def _unscaled(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return decimals whose digits are base64 of a whole number, big-endian."""
    given = texts.to_pylist()
    values = [
        0 if t is None else int.from_bytes(read_base64(_text(t)), "big", signed=True) for t in given
    ]
    if any(not -_MOST < value < _MOST for value in values):
        raise ValueError(f"a decimal has {MOST_DIGITS} digits at most")
    data = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    valid = pa.array([text is not None for text in given], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(type_, len(given), [valid, pa.py_buffer(data)])


def _struct(schema: Schema, how: How) -> Wire:
    target = arrow_type(schema)
    if not schema.fields:
        return Wire(columns.Map(columns.JsonText()), partial(_no_fields, target))
    parts = [wire_of(each.schema, how) for each in schema.fields]
    fields = tuple(
        columns.Field(each.name, part.type, is_required(each.schema, how))
        for each, part in zip(schema.fields, parts, strict=True)
    )

    def convert(column: pa.Array) -> pa.Array:
        inner = [part.convert(column.field(at)) for at, part in enumerate(parts)]
        return pa.StructArray.from_arrays(inner, fields=list(target), mask=column.is_null())

    return Wire(columns.Struct(fields), convert)


def _no_fields(type_: pa.DataType, column: pa.Array) -> pa.Array:
    return pa.array([{} if valid else None for valid in column.is_valid().to_pylist()], type_)


def _array(schema: Schema, how: How) -> Wire:
    assert schema.values  # noqa: S101 - a schema is refused without
    element, target = _element(schema.values, how), arrow_type(schema)

    def convert(column: pa.Array) -> pa.Array:
        offsets = _offsets(pc.fill_null(column.value_lengths(), 0), column)
        return pa.ListArray.from_arrays(offsets, element.convert(column.flatten()), type=target)

    return Wire(columns.Array(element.type), convert)


def _element(schema: Schema, how: How) -> Wire:
    """Return how elements of arrays and maps are read: the JSON kernel lets them be null."""
    wire = wire_of(schema, how)
    if not is_required(schema, how):
        return wire

    def convert(column: pa.Array) -> pa.Array:
        if column.null_count:
            raise ValueError("an element is null, and the schema requires a value")
        return wire.convert(column)

    return Wire(wire.type, convert)


def _offsets(lengths: pa.Array, column: pa.Array) -> pa.Array:
    ends = np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate(([0], ends)), pa.int32(), mask=np.append(nulls, False))


def _map(schema: Schema, how: How) -> Wire:
    assert schema.keys and schema.values  # noqa: S101 - a schema is refused without
    if schema.keys.type is not Type.STRING:
        return _pairs(schema, how)
    value, target = _element(schema.values, how), arrow_type(schema)

    def convert(column: pa.Array) -> pa.Array:
        keys, values, counts = pairs_of(column)
        offsets = _offsets(pa.array(counts), column)
        return pa.MapArray.from_arrays(offsets, keys, value.convert(values), type=target)

    return Wire(columns.Map(value.type), convert)


def _pairs(schema: Schema, how: How) -> Wire:
    """Return how a map of other keys is read: a list of pairs, each a list of key and value."""
    # Its kernel is one level down: imported here, the two modules need no common third one.
    from penstock.decode.kernels.connect.payloads import PayloadReader  # noqa: PLC0415

    assert schema.keys and schema.values  # noqa: S101 - a schema is refused without
    keys, values = (PayloadReader(each, how.replace_null) for each in (schema.keys, schema.values))
    target = arrow_type(schema)

    def convert(column: pa.Array) -> pa.Array:
        offsets = _offsets(pc.fill_null(column.value_lengths(), 0), column)
        pairs = [_split(each) for each in column.flatten().to_pylist()]
        read = [
            _all(reader, [pair[at] for pair in pairs]) for at, reader in ((0, keys), (1, values))
        ]
        return pa.MapArray.from_arrays(offsets, *read, type=target)

    return Wire(columns.Array(columns.JsonText()), convert)


def _split(pair: str | None) -> tuple[msgspec.Raw, msgspec.Raw]:
    try:
        return _pair(pair or "null")
    except msgspec.MsgspecError as error:
        raise ValueError(f"a pair of a map is a list of key and value: {error}") from None


def _all(reader: Callable[[pa.Array], Any], parts: list[msgspec.Raw]) -> pa.Array:
    read = reader(pa.array([bytes(part) for part in parts], pa.binary()))
    if read.failures:
        raise ValueError(read.failures[0].message)
    return read.values
