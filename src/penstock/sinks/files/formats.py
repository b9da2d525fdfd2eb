"""How rows become files of each format, and how such files are written once more in another size."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from penstock.errors import ConfigError
from penstock.pipeline.json_options import EXACT_JSON, EXACT_TIMES
from penstock.pipeline.names import quoted
from penstock.pipeline.storage import unglobbed
from penstock.sinks.evolution import with_nested
from penstock.sinks.files.file_table import FileTable

# Regardless of the session's settings: files that are to be replaced must be read completely.
_STRICT = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
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
        return super().writer(rows, table).options(**EXACT_JSON)

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
        return self.rewriter(texts, table).options(**EXACT_TIMES)

    def again(self, spark: SparkSession, files: list[str], table: FileTable) -> DataFrame:
        """Return the fields as texts. Columns go by place: new ones are last, and null in older files."""
        texts = t.StructType([t.StructField(each.name, t.StringType()) for each in table.in_files])
        reader = spark.read.options(**_STRICT, **_CSV, multiLine="true", nullValue=_NEVER)
        return reader.schema(texts).csv([*map(unglobbed, files)])

    def rewriter(self, held: DataFrame, table: FileTable) -> DataFrameWriter:
        """Return what writes the fields."""
        # A line with nothing on it would be left out: the null of a lone column becomes an empty text.
        null = '""' if len(table.in_files) == 1 else ""
        return held.write.format(self.name).options(**_CSV, nullValue=null)


FORMATS = {each.name: each for each in (Format(), JsonLines(), Csv())}


def conformed(rows: DataFrame, columns: t.StructType) -> DataFrame:
    """Return the rows with the table's columns, in its order and with its types; null where one lacks."""
    given = {each.name.lower(): each.dataType.simpleString() for each in rows.schema}
    if list(given.items()) == [
        (each.name.lower(), each.dataType.simpleString()) for each in columns
    ]:
        return rows
    return rows.select(*(_cast(each, each.name.lower() in given) for each in columns))


def storable(columns: t.StructType) -> None:
    """Refuse types that no file can hold."""
    for each in columns:
        if any(isinstance(kind, t.CalendarIntervalType) for kind in with_nested(each.dataType)):
            raise ConfigError(
                f"the column {each.name!r} is {each.dataType.simpleString()}, which no file can hold: "
                f"give it a type in a step, as in 'CAST({each.name} AS string) AS {each.name}'"
            )


def _cast(field: t.StructField, given: bool) -> Column:
    value = f.col(quoted(field.name)) if given else f.lit(None)
    return value.cast(field.dataType).alias(field.name)


def _text(field: t.StructField) -> Column:
    """Return a column in a form that CSV can store."""
    value = f.col(quoted(field.name))
    if isinstance(field.dataType, (t.StructType, t.MapType, t.ArrayType, t.VariantType)):
        value = f.to_json(value, EXACT_JSON)
    elif isinstance(field.dataType, t.BinaryType):
        value = f.base64(value)
    elif isinstance(field.dataType, t.NullType):
        value = value.cast("string")
    return value.alias(field.name)
