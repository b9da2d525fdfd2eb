"""MaskField: values of fields replaced with zero values or with a given one."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.formats.connect import Schema, Type
from penstock.formats.connect.schema import DATE, DECIMAL, TIME, TIMESTAMP
from penstock.steps.connect_transforms.part_transform import (
    PartTransform,
    changed_values,
    kind_of,
    required_map,
    with_keys,
)
from penstock.steps.connect_transforms.record_columns import Part, map_part
from penstock.steps.connect_transforms.spark_types import literal, scale, spark_type

_ZEROS = {
    Type.BOOLEAN: False,
    Type.INT8: 0,
    Type.INT16: 0,
    Type.INT32: 0,
    Type.INT64: 0,
    Type.FLOAT32: 0.0,
    Type.FLOAT64: 0.0,
    Type.STRING: "",
    Type.ARRAY: [],
    Type.MAP: {},
}
_BITS = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
_JAVA_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")


class MaskField(PartTransform):
    """Hides values; a field that is null stays null, a key or value that is null is refused."""

    def with_schema(self, part: Part) -> Part:
        """Return the struct with its masked fields; its schema is the same."""
        masked = self.options["fields"]
        members = tuple(
            self._masked(column, field.schema) if field.name in masked else column
            for field, column in part.fields(defaults=self.defaults)
        )
        refuse = f.raise_error(
            f.lit("Only Struct objects supported for [mask fields], found: null")
        )
        absent = f.when(part.is_null, refuse.cast("boolean")).otherwise(f.lit(False))
        return replace(part, members=members, absent=absent)

    def _masked(self, column: Column, schema: Schema) -> Column:
        replacement = self.options["replacement"]
        new = _zero(schema) if replacement is None else _replaced(replacement, schema)
        return f.when(column.isNotNull(), new).cast(spark_type(schema))

    def without_schema(self, part: Part) -> Part:
        """Return the object with its masked entries; one that did not exist is added, with null."""
        fields = dict.fromkeys(self.options["fields"], self._variant)
        entries = required_map(part, "mask fields")
        return map_part(changed_values(with_keys(entries, fields), fields))

    def _variant(self, value: Column) -> Column:
        replacement = self.options["replacement"]
        kind = kind_of(value)
        if replacement is None:
            made = [
                (_is(kind, name), f.parse_json(f.lit(zero))) for name, zero in _JSON_ZEROS.items()
            ]
        else:
            made = [
                (_is(kind, "BIGINT"), _replaced(replacement, Schema(Type.INT64)).cast("variant")),
                (_is(kind, "STRING"), f.lit(replacement).cast("variant")),
                (_is_fraction(kind), _replaced(replacement, Schema(Type.FLOAT64)).cast("variant")),
            ]
        refuse = f.raise_error(
            f.concat(f.lit("Cannot mask value of type: "), kind, f.lit(_custom(replacement)))
        )
        result = f.when(value.isNull() | _is(kind, "VOID"), value)
        for matches, new in made:
            result = result.when(matches, new)
        return result.otherwise(refuse.cast("variant"))


_JSON_ZEROS = {
    "STRING": '""',
    "BIGINT": "0",
    "DECIMAL": "0.0",
    "DOUBLE": "0.0",
    "FLOAT": "0.0",
    "BOOLEAN": "false",
    "ARRAY": "[]",
    "OBJECT": "{}",
}


def _is(kind: Column, name: str) -> Column:
    return f.startswith(kind, f.lit(name))


def _is_fraction(kind: Column) -> Column:
    return _is(kind, "DECIMAL") | _is(kind, "DOUBLE") | _is(kind, "FLOAT")


def _custom(replacement: str | None) -> str:
    return "" if replacement is None else " with custom replacement value."


def _zero(schema: Schema) -> Column:
    if schema.type is Type.BYTES and schema.name == DECIMAL:
        return literal(Decimal(0), schema)
    if schema.type not in _ZEROS:
        return f.raise_error(f.lit(f"Cannot mask value of type: {schema.type.value}"))
    return literal(_ZEROS[schema.type], schema)


def _replaced(replacement: str, schema: Schema) -> Column:
    """Return the replacement as a value of a schema; what raises for each record if it is not one."""
    if schema.name in (DATE, TIME, TIMESTAMP):
        return f.raise_error(f.lit(_refusal(schema)))
    if schema.type is Type.STRING:
        return f.lit(replacement)
    is_number = schema.type in (*_BITS, Type.FLOAT32, Type.FLOAT64) or schema.name == DECIMAL
    if not is_number:
        return f.raise_error(f.lit(_refusal(schema)))
    number = _number(replacement, schema)
    if number is None:
        text = f"Unable to convert {replacement} ({schema.type.value}) to number"
        return f.raise_error(f.lit(text))
    return f.lit(number).cast(spark_type(schema))


def _refusal(schema: Schema) -> str:
    name = schema.name or schema.type.value
    return f"Cannot mask value of type {name} with custom replacement value."


def _number(text: str, schema: Schema) -> int | float | Decimal | None:
    if not _JAVA_NUMBER.fullmatch(text):
        return None
    if schema.type in _BITS:
        half = 1 << _BITS[schema.type]
        return (int(Decimal(text)) + half) % (2 * half) - half
    if schema.name == DECIMAL:
        return round(Decimal(text), scale(schema))
    return float(text)
