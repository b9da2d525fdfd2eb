"""How rows become files of each format, and how such files are written once more in another size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CalendarIntervalType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from penstock.errors import ConfigError
from penstock.pipeline.storage import unglobbed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession

    from penstock.sinks.files.table import FileTable

# Whatever the session is told elsewhere: files that are to be replaced must be read whole.
_STRICT = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
# Spark's own forms of times lose what is finer than a millisecond.
_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_CSV = {
    "header": "true",
    "escape": '"',
    "lineSep": "\n",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
# No field can be this; by Spark's default, an empty text would come back as null.
_NEVER = "\x00penstock\x00null\x00"


class Format:
    """One format of files: here Parquet, which holds every type as it is."""

    name: ClassVar[str] = "parquet"
    # The first one is the default.
    compressions: ClassVar[tuple[str, ...]] = ("zstd", "snappy", "gzip", "lz4", "none")

    def writer(self, rows: DataFrame, table: FileTable) -> DataFrameWriter:
        """Return what writes rows as files of the table."""
        return conformed(rows, table.columns).write.format(self.name)

    def again(self, spark: SparkSession, files: list[str], table: FileTable) -> DataFrame:
        """Return what is in some files, for `rewriter`."""
        reader = spark.read.options(**_STRICT).schema(table.in_files)
        return reader.parquet(*map(unglobbed, files))

    def rewriter(self, held: DataFrame, table: FileTable) -> DataFrameWriter:  # noqa: ARG002
        """Return what writes that into other files."""
        return held.write.format(self.name)


class JsonLines(Format):
    """A JSON object on each line, with all columns; written again, the lines stay as they are."""

    name = "json"
    compressions = ("none", "gzip", "bzip2")

    def writer(self, rows: DataFrame, table: FileTable) -> DataFrameWriter:
        """Return what writes rows as lines, nulls too: a reader sees every column in every line."""
        return super().writer(rows, table).options(**_TIMES, ignoreNullFields="false")

    def again(self, spark: SparkSession, files: list[str], table: FileTable) -> DataFrame:  # noqa: ARG002
        """Return the lines."""
        return spark.read.options(**_STRICT, lineSep="\n").text([*map(unglobbed, files)])

    def rewriter(self, held: DataFrame, table: FileTable) -> DataFrameWriter:  # noqa: ARG002
        """Return what writes the lines."""
        return held.write.format("text").option("lineSep", "\n")


class Csv(Format):
    """A header and a line for each row, quoted as RFC 4180 says; what is nested is JSON, bytes base64."""

    name = "csv"
    compressions = ("none", "gzip", "bzip2")

    def writer(self, rows: DataFrame, table: FileTable) -> DataFrameWriter:
        """Return what writes rows as lines."""
        texts = conformed(rows, table.columns).select(*(_text(each) for each in table.columns))
        return self.rewriter(texts, table).options(**_TIMES)

    def again(self, spark: SparkSession, files: list[str], table: FileTable) -> DataFrame:
        """Return the fields as texts. Columns go by place: new ones are last, and null in older files."""
        texts = StructType([StructField(each.name, StringType()) for each in table.in_files])
        reader = spark.read.options(**_STRICT, **_CSV, multiLine="true", nullValue=_NEVER)
        return reader.schema(texts).csv([*map(unglobbed, files)])

    def rewriter(self, held: DataFrame, table: FileTable) -> DataFrameWriter:
        """Return what writes the fields."""
        # A line with nothing on it would be left out: the null of a lone column becomes an empty text.
        null = '""' if len(table.in_files) == 1 else ""
        return held.write.format(self.name).options(**_CSV, nullValue=null)


FORMATS = {each.name: each for each in (Format(), JsonLines(), Csv())}


def conformed(rows: DataFrame, columns: StructType) -> DataFrame:
    """Return the rows with the table's columns, in its order and with its types; null where one lacks."""
    given = {each.name.lower(): each.dataType.simpleString() for each in rows.schema}
    if list(given.items()) == [
        (each.name.lower(), each.dataType.simpleString()) for each in columns
    ]:
        return rows
    return rows.select(*(_cast(each, each.name.lower() in given) for each in columns))


def storable(columns: StructType) -> None:
    """Refuse types that no file can hold."""
    for each in columns:
        if any(isinstance(kind, CalendarIntervalType) for kind in _within(each.dataType)):
            raise ConfigError(
                f"the column {each.name!r} is {each.dataType.simpleString()}, which no file can hold: "
                f"give it a type in a step, as in 'CAST({each.name} AS string) AS {each.name}'"
            )


def _within(kind: DataType) -> Iterator[DataType]:
    """A type and all types inside it."""
    yield kind
    if isinstance(kind, StructType):
        inner = [each.dataType for each in kind]
    elif isinstance(kind, MapType):
        inner = [kind.keyType, kind.valueType]
    else:
        inner = [kind.elementType] if isinstance(kind, ArrayType) else []
    for each in inner:
        yield from _within(each)


def _column(name: str) -> Column:
    return f.col(f"`{name.replace('`', '``')}`")


def _cast(field: StructField, given: bool) -> Column:
    value = _column(field.name) if given else f.lit(None)
    return value.cast(field.dataType).alias(field.name)


def _text(field: StructField) -> Column:
    """A column as CSV can hold it."""
    value = _column(field.name)
    if isinstance(field.dataType, (StructType, MapType, ArrayType, VariantType)):
        value = f.to_json(value, {**_TIMES, "ignoreNullFields": "false"})
    elif isinstance(field.dataType, BinaryType):
        value = f.base64(value)
    elif isinstance(field.dataType, NullType):
        value = value.cast("string")
    return value.alias(field.name)
