"""TimestampConverter: moments as text, as numbers, or as Date, Time or Timestamp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.formats.connect import INT64, STRING, Field, Schema, Type, date, time, timestamp
from penstock.formats.connect.schema import DATE, TIME, TIMESTAMP
from penstock.steps.connect_transforms.date_reading import read_millis
from penstock.steps.connect_transforms.date_text import MILLIS_OF_DAY, date_text
from penstock.steps.connect_transforms.moments import (
    date_of,
    millis_of,
    time_of,
    timestamp_of,
)
from penstock.steps.connect_transforms.part_transform import (
    PartTransform,
    changed_values,
    kind_of,
    with_keys,
)
from penstock.steps.connect_transforms.record_columns import (
    MismatchError,
    Part,
    map_part,
)

_SCHEMAS = {
    "string": STRING,
    "unix": INT64,
    "Date": date(),
    "Time": time(),
    "Timestamp": timestamp(),
}
_PER_MILLI = {"microseconds": 1000, "nanoseconds": 1_000_000}
_LIMIT = 2**63 - 1


class TimestampConverter(PartTransform):
    """Converts one field, or the whole key or value. A null stays null."""

    def with_schema(self, part: Part) -> Part:
        """Return the part with its converted field; a struct without the field stays as it is."""
        name = self.options["field"]
        if not name:
            assert part.schema is not None  # noqa: S101 - called with a schema
            return Part(self._converted(part.column, part.schema), self._schema(part.schema))
        return part.with_fields(
            (Field(name, self._schema(field.schema)), self._converted(column, field.schema))
            if field.name == name else (field, column)
            for field, column in part.fields(defaults=self.defaults)
        )  # fmt: skip

    def without_schema(self, part: Part) -> Part:
        """Return the part with its converted entry; one that did not exist is added, with null."""
        name = self.options["field"]
        if not name:
            return Part(self._variant(part.column), None)
        entries = with_keys(part.as_map(), [name])
        return map_part(changed_values(entries, {name: self._variant}))

    @property
    def _target(self) -> str:
        return str(self.options["target.type"])

    def _schema(self, schema: Schema) -> Schema:
        return replace(_SCHEMAS[self._target], optional=schema.optional)

    def _converted(self, column: Column, schema: Schema) -> Column:
        return self._written(self._millis(column, schema))

    def _millis(self, column: Column, schema: Schema) -> Column:
        if schema.name in (DATE, TIME, TIMESTAMP):
            return millis_of(column, schema)
        if schema.type is Type.STRING:
            return self._read(column)
        if schema.type is Type.INT64:
            return _from_unix(column, self.options["unix.precision"])
        raise MismatchError(
            f"Schema {schema.type.name} does not correspond to a known timestamp type format"
        )

    def _read(self, text: Column) -> Column:
        if not self.options["format"]:
            raise MismatchError("TimestampConverter needs the option format to read texts")
        return read_millis(text, self.options["format"])

    def _written(self, millis: Column) -> Column:
        return self._writers[self._target](millis)

    @property
    def _writers(self) -> dict[str, Callable[[Column], Column]]:
        return {
            "string": lambda millis: date_text(millis, self.options["format"]),
            "unix": lambda millis: _to_unix(millis, self.options["unix.precision"]),
            "Date": date_of,
            "Time": time_of,
            "Timestamp": timestamp_of,
        }

    def _variant(self, value: Column) -> Column:
        """Convert a value by the type that it has; what becomes a date or time is a timestamp."""
        kind = kind_of(value)
        unix = _from_unix(f.try_variant_get(value, "$", "bigint"), self.options["unix.precision"])
        moment = f.unix_millis(f.try_variant_get(value, "$", "timestamp"))
        millis = f.when(kind == "BIGINT", unix).when(kind == "TIMESTAMP", moment)
        if self.options["format"]:
            millis = millis.when(
                kind == "STRING", self._read(f.try_variant_get(value, "$", "string"))
            )
        refuse = f.raise_error(
            f.concat(
                f.lit("TimestampConverter does not support values of the type "),
                kind,
                f.lit(" (texts need the option format)"),
            )
        )
        present = value.isNotNull() & (kind != "VOID")
        millis = f.when(present, millis.otherwise(refuse.cast("bigint")))
        return self._written_variant(millis)

    def _written_variant(self, millis: Column) -> Column:
        match self._target:
            case "Date":
                moment = timestamp_of(millis - f.pmod(millis, f.lit(MILLIS_OF_DAY)))
            case "Time":
                moment = timestamp_of(f.pmod(millis, f.lit(MILLIS_OF_DAY)))
            case _:
                moment = self._written(millis)
        return moment.cast("variant")


def _from_unix(number: Column, precision: str) -> Column:
    """Return milliseconds; as in Java, what is too large becomes the largest."""
    if precision == "seconds":
        return _saturated(number, 1000)
    return _divided(number, _PER_MILLI.get(precision, 1))


def _to_unix(millis: Column, precision: str) -> Column:
    if precision == "seconds":
        return _divided(millis, 1000)
    return _saturated(millis, _PER_MILLI.get(precision, 1))


def _divided(number: Column, by: int) -> Column:
    """Divide, and drop what is left over; exactly, where a double would not be."""
    if by == 1:
        return number
    return f.call_function("div", number, f.lit(by))


def _saturated(number: Column, factor: int) -> Column:
    if factor == 1:
        return number
    largest = _LIMIT // factor
    return (
        f.when(number > largest, f.lit(_LIMIT))
        .when(number < -largest, f.lit(-_LIMIT - 1))
        .otherwise(number * factor)
    )
