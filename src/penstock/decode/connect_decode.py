"""Kafka records as a connector has them: topic, partition, offset, time, headers, typed key and value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field, InstanceOf
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.config import Connection
from penstock.decode.connect_parts import Part, Sampling, bound_part
from penstock.decode.kernels.connect.record_kernel import RecordKernel, RecordPlan, bad_column
from penstock.decode.kernels.outcome import Kernel
from penstock.decode.workers import ArrowDecode, with_origin
from penstock.errors import ConfigError
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.connect.schema import Schema
from penstock.pipeline import FAILED, ORIGIN, Decode, Source
from penstock.pipeline.header_column import HEADERS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORD_COLUMNS = ("topic", "partition", "offset", "timestamp", "headers", "key", "value")
_NOT_JSON = "it is not JSON: the converter has schemas.enable=false, and reads any JSON value"


class ConnectDecode(Decode):
    """Records with the converters of Kafka Connect, as the columns of RECORD_COLUMNS.

    Key and value have the types of their schemas. JSON without schemas is a column of its text: no
    number loses a digit, and `parse_json` makes a VARIANT of it. A record without a value stays null.

    With JsonConverter and schemas the newest records decide the columns. A new record whose schema
    has more fields makes the pipeline go on with them; a record whose schema cannot be read into the
    columns is a bad record. Values are read strictly: a text is not a number, 300 is not an int8.
    """

    name = "connect"

    key: ConverterOptions = Field(
        default=ConverterOptions(form="bytes"), description="The converter of keys."
    )
    value: ConverterOptions = Field(description="The converter of values.")
    connection: Connection | None = Field(
        default=None,
        description="The cluster in which records are looked at for their schema, where they have it "
        "with them.",
    )
    pattern: str | None = Field(
        default=None, description="The topics, where the source has a pattern for their names."
    )
    evolve: Literal["follow", "fail"] = Field(
        default="follow",
        description="When records come with a schema that has more fields: `follow`: the pipeline goes "
        "on with them; `fail`: it stops.",
    )

    def placed(self, source: Source, connection: Connection) -> ConnectDecode:
        """Return the decode with the cluster and, where the source has one, the pattern of the topics."""
        given = {
            "connection": self.connection or connection,
            "pattern": self.pattern or source.topic_pattern(),
        }
        return self.model_copy(update=given)

    def bind(self, topics: Sequence[str], _part: str = "value") -> BoundConnectDecode:
        """Return the decode with the schemas that keys and values have now."""
        where = topics or self.pattern or ()
        sampling = Sampling(self.connection, where, evolves=self.evolve == "follow")
        return BoundConnectDecode(
            key_part=bound_part(self.key, "key", sampling),
            value_part=bound_part(self.value, "value", sampling),
            options=self._options(),
        )

    def _options(self) -> str:
        """Return the options that change which records fail."""
        kept = {"key", "value", "evolve"}
        options = self.model_dump_json(by_alias=True, exclude_defaults=True, include=kept)
        return f"{self.name}: {options}"

    def decode(self, _records: DataFrame) -> DataFrame:
        """Raise: the schemas are not known yet."""
        raise ConfigError("the decode 'connect' is used before it is bound")

    def failures(self, _records: DataFrame) -> DataFrame:
        """Raise: the schemas are not known yet."""
        raise ConfigError("the decode 'connect' is used before it is bound")


class BoundConnectDecode(ArrowDecode):
    """The decode of one attempt: `key_schema` and `value_schema` are known."""

    name = "bound_connect"
    key_part: InstanceOf[Part] = Field(repr=False)
    value_part: InstanceOf[Part] = Field(repr=False)
    # The identity of the decode that it is made of.
    options: str

    @property
    def key_schema(self) -> Schema | None:
        """Return the schema of the column `key`; None for JSON text."""
        return self.key_part.schema

    @property
    def value_schema(self) -> Schema | None:
        """Return the schema of the column `value`; None for JSON text."""
        return self.value_part.schema

    @property
    def unknown(self) -> frozenset[str]:
        """Return which of key and value have a schema that no record has shown yet."""
        return frozenset(name for name, part in self._parts.items() if part.is_unknown)

    @property
    def _parts(self) -> dict[str, Part]:
        return {"key": self.key_part, "value": self.value_part}

    def identity(self) -> str:
        """Return the options, with the schemas of keys and values."""
        return ", ".join([self.options, *(part.identity for part in self._parts.values())])

    def columns(self) -> list[str]:
        """Return the columns that the workers read."""
        return self._plan().columns()

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel."""
        return partial(RecordKernel, self._plan())

    def row_schema(self) -> StructType:
        """Return the columns that the workers make."""
        made = [(name, part.type) for name, part in self._parts.items() if part.make]
        return StructType([StructField(name, type_) for name, type_ in made])

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the record columns and FAILED."""
        return self._records(records, ())

    def traced(self, records: DataFrame) -> DataFrame:
        """Return the record columns, and where each record is from."""
        return self._records(records, ORIGIN)

    def failures(self, records: DataFrame) -> DataFrame:
        """Return the complete failed records with their errors."""
        marked = self._marked(records)
        if not self._in_python:
            return self._failed_in_spark(marked).drop(*self._marks())
        return super().failures(marked).drop(*self._marks())

    @property
    def _in_python(self) -> bool:
        return any(part.make for part in self._parts.values())

    def _plan(self) -> RecordPlan:
        readers = {name: part.make for name, part in self._parts.items() if part.make}
        checked = {n: f"{n}: {_NOT_JSON}" for n, part in self._parts.items() if part.bad}
        return RecordPlan(readers, checked)

    def _marks(self) -> list[str]:
        return [bad_column(name) for name, part in self._parts.items() if part.bad]

    def _marked(self, records: DataFrame) -> DataFrame:
        """Return the records with a column for each part that Spark checks itself."""
        marks = {
            bad_column(name): part.bad(f.col(name))
            for name, part in self._parts.items()
            if part.bad is not None
        }
        return records.withColumns(marks) if marks else records

    def _records(self, records: DataFrame, more: Sequence[str]) -> DataFrame:
        marked = self._marked(with_origin(records) if more else records)
        kept = [
            name
            for name in (*RECORD_COLUMNS, *more)
            if name in marked.columns and (name not in self._parts or not self._parts[name].make)
        ]
        if self._in_python:
            staged = self._decoded(marked, {name: name for name in kept})
        else:
            staged = self._staged_in_spark(marked, kept)
        if "headers" not in kept:
            staged = staged.withColumn("headers", f.lit(None).cast(HEADERS))
        names = (*RECORD_COLUMNS, *more)
        return staged.select(*map(self._column, names), f.col(FAILED))

    def _column(self, name: str) -> Column:
        part = self._parts.get(name)
        if part is None or part.expression is None:
            return f.col(name)
        return part.expression(f.col(name)).alias(name)

    def _bad(self) -> Column:
        bad = f.lit(False)
        for name in self._marks():
            bad = bad | f.col(name)
        return bad

    def _staged_in_spark(self, marked: DataFrame, kept: Sequence[str]) -> DataFrame:
        if not self._marks():
            return marked.select(*kept, f.lit(None).cast("long").alias(FAILED))
        bad = self._bad()
        columns = [f.when(~bad, f.col(name)).alias(name) for name in kept]
        return marked.select(*columns, f.when(bad, _fingerprint()).alias(FAILED))

    def _failed_in_spark(self, marked: DataFrame) -> DataFrame:
        message = f.lit(None).cast("string")
        for name, part in self._parts.items():
            if part.bad is not None:
                text = f.lit(f"{name}: {_NOT_JSON}")
                message = f.coalesce(message, f.when(f.col(bad_column(name)), text))
        return marked.where(self._bad()).withColumns(
            {
                "error_type": f.lit("MalformedJson").cast(StringType()),
                "error": message,
                FAILED: _fingerprint(),
            }
        )


def _fingerprint() -> Column:
    value = f.coalesce(f.col("value"), f.lit(b""))
    return f.crc32(value).cast(LongType())
