"""Keys and values as converters write them: in Python workers, over whole Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.encode.column_bytes import Encode
from penstock.encode.connect_encodes import converter_encode
from penstock.encode.schema_registration import Target
from penstock.error_frame import in_worker
from penstock.errors import ConfigError, RefusedError
from penstock.formats.connect import Schema
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.converter_options import REGISTERED, ConverterOptions
from penstock.pipeline.header_column import with_empty_headers, with_null_headers

TOPIC = "topic"


@dataclass(frozen=True)
class PartEncode:
    """How a key or a value of a schema becomes bytes; without a schema the column is text of JSON."""

    options: ConverterOptions
    schema: Schema | None
    part: str

    @property
    def by_topic(self) -> bool:
        """Return whether the schema is registered for the topic of the record."""
        return self.options.form in REGISTERED

    @property
    def type(self) -> pa.DataType:
        """Return the type of the column."""
        return pa.string() if self.schema is None else arrow_type(self.schema)

    def make(self, topic: str) -> Encode:
        """Return the encode for a topic; raise what is wrong with the converter or the schema."""
        return converter_encode(self.options, self.schema, Target(topic, self.part))


def encoded(rows: DataFrame, parts: Mapping[str, PartEncode]) -> DataFrame:
    """Return the rows with bytes in these columns; the column TOPIC has the topics of the records."""
    if not parts:
        return rows
    for each in parts.values():
        if not each.by_topic:
            each.make("")  # what is wrong with it is raised before a record is read
    output = StructType(
        [StructField(f.name, BinaryType()) if f.name in parts else f for f in rows.schema]
    )
    run = in_worker(_Encoding(dict(parts)).run, "step")
    return with_null_headers(with_empty_headers(rows).mapInArrow(run, output))


class _Encoding:
    """Encodes columns of batches, in a worker; a topic's schema is registered when it comes first."""

    def __init__(self, parts: dict[str, PartEncode]) -> None:
        self._parts = parts
        self._made: dict[tuple[str, str], Encode] = {}

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches, encoded."""
        for batch in batches:
            yield self._encoded(batch)

    def _encoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, part in self._parts.items():
            at = batch.schema.get_field_index(name)
            column = _cast(batch.column(at), part.type)
            topics = batch.column(TOPIC) if part.by_topic else None
            batch = batch.set_column(at, name, self._bytes(name, column, topics))
        return batch

    def _bytes(self, name: str, column: pa.Array, topics: pa.Array | None) -> pa.Array:
        if topics is None or column.null_count == len(column):
            return self._run(name, "", column) if topics is None else _nulls(column)
        names = pc.unique(topics).to_pylist()
        if len(names) == 1:
            return self._run(name, names[0], column)
        made: list[bytes | None] = [None] * len(column)
        for topic in names:
            places = pc.indices_nonzero(pc.equal(topics, pa.scalar(topic, topics.type)))
            own = self._run(name, topic, column.take(places)).to_pylist()
            for place, data in zip(places.to_pylist(), own, strict=True):
                made[place] = data
        return pa.array(made, pa.binary())

    def _run(self, name: str, topic: str, column: pa.Array) -> pa.Array:
        part = self._parts[name]
        if (name, topic) not in self._made:
            self._made[name, topic] = part.make(topic)
        try:
            return self._made[name, topic](column).cast(pa.binary())
        except (ConfigError, RefusedError):
            raise
        except (ValueError, TypeError, OverflowError) as error:  # Arrow's are such
            raise RefusedError(f"{part.part}: {error}", stage="step") from error


def _cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)


def _nulls(column: pa.Array) -> pa.Array:
    return pa.nulls(len(column), pa.binary())
