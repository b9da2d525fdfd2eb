"""Which columns of a row become which part of a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.encode.column_encodes import takes_one_column
from penstock.encode.format_options import FormatChoice
from penstock.errors import ConfigError, nearest
from penstock.pipeline import ORIGIN
from penstock.pipeline.header_column import HEADERS
from penstock.pipeline.json_options import EXACT_JSON
from penstock.pipeline.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WORDS: dict[type[DataType], str] = {
    StringType: "a string",
    IntegralType: "a whole number",
    NumericType: "a number",
    BooleanType: "a boolean",
    TimestampType: "a timestamp",
}


class Columns(NamedTuple):
    """The columns that the options of the sink `kafka` name; None where they name none."""

    topic: str | None
    partition: str | None
    key: str | None
    value: str | None
    headers: str | None

    def check(self, rows: StructType) -> None:
        """Refuse columns that are not there, or that cannot be what they are named for."""
        require_columns("kafka", self, rows)
        require_type("kafka", "topic_column", self.topic, rows, StringType)
        require_type("kafka", "partition", self.partition, rows, IntegralType)
        if self.headers:
            require_headers("kafka", self.headers, rows)

    def records(
        self, rows: DataFrame, topic: str, formats: Mapping[str, FormatChoice] | None = None
    ) -> DataFrame:
        """Return the records: `value` and, where they are asked for, key, headers, partition, topic.

        The parts that have a format in `formats` are columns that are not encoded yet.
        """
        self.check(rows.schema)
        formats = formats or {}
        value = formats.get("value")
        columns = {"value": value_of(rows, self.value, self, value)}
        if self.key:
            columns["key"] = column(self.key) if "key" in formats else as_bytes(rows, self.key)
        if self.headers:
            # Not null: Arrow would pass over all that are null again for each row (`header_column`).
            headers = column(self.headers).cast(HEADERS)
            columns["headers"] = f.coalesce(headers, f.array().cast(HEADERS))
        if self.partition:
            columns["partition"] = column(self.partition).cast("int")
        if self.topic:
            columns["topic"] = f.coalesce(column(self.topic), f.lit(topic))
        return rows.select(*(column.alias(name) for name, column in columns.items()))


def value_of(
    rows: DataFrame,
    named: str | None,
    used: Iterable[str | None],
    chosen: FormatChoice | None = None,
) -> Column:
    """Return the value: the column that is named, or all that are not used otherwise as one object.

    As bytes, unless there is a format that tasks apply: then as it is.
    """
    rest = [column(name) for name in rows.columns if name not in {*used, *ORIGIN}]
    if chosen:
        if one := value_column(rows.columns, named, used, chosen):
            return column(one)
        if not rest:
            raise ConfigError(
                f"no column is left for the value in the format {chosen.name!r}: every column is used "
                "for something else"
            )
        return f.struct(*rest)
    if named:
        return as_bytes(rows, named)
    if not rest:
        return f.lit(None).cast("binary")
    return f.to_json(f.struct(*rest), EXACT_JSON).cast("binary")


def value_column(
    names: Sequence[str], named: str | None, used: Iterable[str | None], chosen: FormatChoice
) -> str | None:
    """Return the one column that is the value; None where it is a row of all others."""
    if named or not takes_one_column(chosen):
        return named
    rest = [name for name in names if name not in {*used, *ORIGIN}]
    if len(rest) == 1:
        return rest[0]
    raise ConfigError(
        f"the format {chosen.name!r} writes one column, and there are {len(rest)}: name it with 'value'"
    )


def column(name: str) -> Column:
    """Return a column by its name, whatever letters that has."""
    return f.col(quoted(name))


def as_bytes(rows: DataFrame, name: str) -> Column:
    """Return text and bytes unchanged, nested values as JSON, all else as text; a null stays null."""
    kind = rows.schema[name].dataType
    if isinstance(kind, BinaryType):
        return column(name)
    if isinstance(kind, (StructType, ArrayType, MapType)):
        return f.to_json(column(name), EXACT_JSON).cast("binary")
    return column(name).cast("string").cast("binary")


def require_columns(sink: str, names: Iterable[str | None], rows: StructType) -> None:
    """Refuse columns that are not there."""
    for name in filter(None, names):
        if name not in rows.names:
            raise ConfigError(
                f"the sink {sink!r} is configured to use the column {name!r}; "
                f"{nearest(name, rows.names)}"
            )


def require_type(
    sink: str, option: str, name: str | None, rows: StructType, wanted: type[DataType]
) -> None:
    """Refuse a column of another type than an option needs."""
    if name and not isinstance(rows[name].dataType, wanted):
        raise _wrong_type(sink, option, rows[name], _WORDS[wanted])


def require_headers(sink: str, name: str, rows: StructType) -> None:
    """Refuse a column that cannot be headers."""
    if not _is_headers(rows[name].dataType):
        raise _wrong_type(sink, "headers", rows[name], HEADERS)


def _wrong_type(sink: str, option: str, given: StructField, wanted: str) -> ConfigError:
    return ConfigError(
        f"{option!r} of the sink {sink!r} names the column {given.name!r}, which is "
        f"{given.dataType.simpleString()}: it must be {wanted}; a step can make it so"
    )


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    kinds = (StringType, BinaryType)
    return [field.name for field in fields] == ["key", "value"] and all(
        isinstance(field.dataType, kinds) for field in fields
    )
