"""Which columns of a row become which part of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegralType,
    MapType,
    StringType,
    StructType,
)

from penstock.encode.column_encodes import takes_one_column
from penstock.encode.format_options import FormatChoice
from penstock.errors import ConfigError, nearest
from penstock.pipeline.json_options import EXACT_JSON
from penstock.pipeline.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HEADERS = "array<struct<key:string,value:binary>>"


class Columns(NamedTuple):
    """The columns that the options name; None where they name none."""

    topic: str | None
    partition: str | None
    key: str | None
    value: str | None
    headers: str | None

    def check(self, rows: StructType) -> None:
        """Refuse columns that are not there, or that cannot be what they are named for."""
        for name in filter(None, self):
            if name not in rows.names:
                raise ConfigError(
                    f"the sink 'kafka' is configured to use the column {name!r}; "
                    f"{nearest(name, rows.names)}"
                )
        _require(rows, "topic_column", self.topic, StringType, "a string")
        _require(rows, "partition", self.partition, IntegralType, "a whole number")
        if self.headers and not _is_headers(rows[self.headers].dataType):
            raise _wrong_type("headers", self.headers, rows[self.headers].dataType, _HEADERS)

    def records(
        self, rows: DataFrame, topic: str, formats: Mapping[str, FormatChoice] | None = None
    ) -> DataFrame:
        """Return the records: `value` and, where they are asked for, key, headers, partition, topic.

        The parts that have a format in `formats` are columns that are not encoded yet.
        """
        self.check(rows.schema)
        formats = formats or {}
        value = formats.get("value")
        columns = {"value": self._plain_value(rows, value) if value else self._value(rows)}
        if self.key:
            columns["key"] = _column(self.key) if "key" in formats else _bytes(rows, self.key)
        if self.headers:
            columns["headers"] = _column(self.headers).cast(_HEADERS)
        if self.partition:
            columns["partition"] = _column(self.partition).cast("int")
        if self.topic:
            columns["topic"] = f.coalesce(_column(self.topic), f.lit(topic))
        return rows.select(*(column.alias(name) for name, column in columns.items()))

    def value_column(self, names: Sequence[str], chosen: FormatChoice) -> str | None:
        """Return the one column that is the value; None where it is a row of all others."""
        if self.value or not takes_one_column(chosen):
            return self.value
        rest = [name for name in names if name not in self]
        if len(rest) == 1:
            return rest[0]
        raise ConfigError(
            f"the format {chosen.name!r} writes one column, and there are {len(rest)}: name it with "
            "'value'"
        )

    def _plain_value(self, rows: DataFrame, chosen: FormatChoice) -> Column:
        if column := self.value_column(rows.columns, chosen):
            return _column(column)
        rest = [_column(name) for name in rows.columns if name not in self]
        if not rest:
            raise ConfigError(
                f"no column is left for the value in the format {chosen.name!r}: every column is key, "
                "headers, partition or topic"
            )
        return f.struct(*rest)

    def _value(self, rows: DataFrame) -> Column:
        if self.value:
            return _bytes(rows, self.value)
        rest = [_column(name) for name in rows.columns if name not in self]
        if not rest:
            return f.lit(None).cast("binary")
        return f.to_json(f.struct(*rest), EXACT_JSON).cast("binary")


def _column(name: str) -> Column:
    return f.col(quoted(name))


def _bytes(rows: DataFrame, name: str) -> Column:
    """Return text and bytes unchanged, nested values as JSON, all else as text; a null stays null."""
    kind = rows.schema[name].dataType
    if isinstance(kind, BinaryType):
        return _column(name)
    if isinstance(kind, (StructType, ArrayType, MapType)):
        return f.to_json(_column(name), EXACT_JSON).cast("binary")
    return _column(name).cast("string").cast("binary")


def _require(
    rows: StructType, option: str, name: str | None, wanted: type[DataType], words: str
) -> None:
    if name and not isinstance(rows[name].dataType, wanted):
        raise _wrong_type(option, name, rows[name].dataType, words)


def _wrong_type(option: str, name: str, given: DataType, wanted: str) -> ConfigError:
    return ConfigError(
        f"{option!r} of the sink 'kafka' names the column {name!r}, which is "
        f"{given.simpleString()}: it must be {wanted}; a step can make it so"
    )


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    kinds = (StringType, BinaryType)
    return [field.name for field in fields] == ["key", "value"] and all(
        isinstance(field.dataType, kinds) for field in fields
    )
