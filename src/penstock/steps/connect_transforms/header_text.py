"""Values as the text that SimpleHeaderConverter writes into headers."""

from __future__ import annotations

import re
import struct
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.formats.connect import Schema, Type
from penstock.formats.connect.schema import DATE, DECIMAL, TIME, TIMESTAMP
from penstock.steps.connect_transforms.java_casts import moment_text
from penstock.steps.connect_transforms.moments import millis_of
from penstock.steps.connect_transforms.part_transform import kind_of
from penstock.steps.connect_transforms.record_columns import accessed

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def header_text(column: Column, schema: Schema) -> Column:
    """Return the text of a value with a schema; null for null."""
    return column if schema.type is Type.STRING else _text(column, schema)


def variant_text(value: Column) -> Column:
    """Return the text of a value without a schema; null for null."""
    kind = kind_of(value)
    double = f.try_variant_get(value, "$", "double").cast("string")
    nested = f.to_json(value)
    return (
        f.when(kind == "VOID", f.lit(None))
        .when(f.rlike(kind, f.lit(r"\A(DECIMAL|DOUBLE|FLOAT)")), double)
        .when(
            kind == "TIMESTAMP",
            moment_text(f.unix_millis(f.try_variant_get(value, "$", "timestamp"))),
        )
        .when(f.rlike(kind, f.lit(r"\A(OBJECT|ARRAY)")), nested)
        .otherwise(f.try_variant_get(value, "$", "string"))
    )


def literal_text(text: str) -> str | None:
    """Return the text of a literal, after Connect has found out its type.

    >>> literal_text("1.0"), literal_text("abc"), literal_text("null")
    ('1', 'abc', None)
    """
    if text == "null":
        return None
    if _NUMBER.fullmatch(text):
        number = Decimal(text)
        whole = number.to_integral_value()
        is_long = number == whole and -(2**63) <= whole < 2**63
        return str(int(number)) if is_long else _fraction_text(number)
    return text


def _fraction_text(number: Decimal) -> str:
    """Return a number that is not a long as Connect prints it: as a float, where it fits into one."""
    if number.as_tuple().exponent == 0:
        return str(number)
    try:
        (single,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        return java_number(float(number), str(float(number)))
    shortest = next(text for n in range(1, 10) if _single(text := f"{single:.{n}g}") == single)
    return java_number(single, shortest)


def _single(text: str) -> float:
    return float(struct.unpack("<f", struct.pack("<f", float(text)))[0])


def java_number(number: float, digits: str) -> str:
    """Return a number as Java prints it, given its shortest digits.

    >>> java_number(0.5, "0.5"), java_number(1e10, "1e10"), java_number(0.00012, "0.00012")
    ('0.5', '1.0E10', '1.2E-4')
    """
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        plain = f"{Decimal(digits):f}"
        return plain if "." in plain else f"{plain}.0"
    mantissa, exponent = f"{Decimal(digits).normalize():.16E}".split("E")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _text(column: Column, schema: Schema) -> Column:
    if schema.name in (DATE, TIME, TIMESTAMP):
        return moment_text(millis_of(column, schema))
    match schema.type:
        case Type.BYTES if schema.name != DECIMAL:
            return f.base64(column)
        case Type.ARRAY:
            assert schema.values is not None  # noqa: S101 - a schema is refused without
            return _joined("[", f.transform(column, _embedded_in(schema.values)), "]")
        case Type.MAP:
            return _map_text(column, schema)
        case Type.STRUCT:
            return _struct_text(column, schema)
    return column.cast("string")


def _embedded_in(schema: Schema):  # type: ignore[no-untyped-def]
    return lambda column: _embedded(column, schema)


def _embedded(column: Column, schema: Schema) -> Column:
    """Return the text of a value within another one: texts and bytes have quotes."""
    quoted = schema.type is Type.STRING or (schema.type is Type.BYTES and schema.name != DECIMAL)
    if not quoted:
        return f.coalesce(_text(column, schema), f.lit("null"))
    column = column if schema.type is Type.STRING else f.base64(column)
    escaped = f.replace(f.replace(column, f.lit("\\"), f.lit("\\\\")), f.lit('"'), f.lit('\\"'))
    return f.coalesce(f.concat(f.lit('"'), escaped, f.lit('"')), f.lit("null"))


def _joined(begin: str, parts: Column, end: str) -> Column:
    return f.concat(f.lit(begin), f.array_join(parts, ","), f.lit(end))


def _map_text(column: Column, schema: Schema) -> Column:
    keys, values = schema.keys, schema.values
    assert keys is not None and values is not None  # noqa: S101 - a schema is refused without

    def entry(pair: Column) -> Column:
        return f.concat(_embedded(pair["key"], keys), f.lit(":"), _embedded(pair["value"], values))

    return _joined("{", f.transform(f.map_entries(column), entry), "}")


def _struct_text(column: Column, schema: Schema) -> Column:
    parts = [
        f.concat(f.lit(f"{_escaped(field.name)}:"), _embedded(member, field.schema))
        for field, member in zip(schema.fields, accessed(column, schema), strict=True)
    ]
    return f.when(column.isNotNull(), _joined("{", f.array(*parts), "}"))


def _escaped(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
