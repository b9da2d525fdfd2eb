"""The rows of a pipeline as records in other formats than JSON: in Python workers, whole Arrow batches.

The driver decides everything about a schema (`RecordEncodes.prepare`); workers get the finished encodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.encode.column_bytes import Encode
from penstock.encode.column_encodes import column_encode
from penstock.encode.format_options import FormatChoice
from penstock.encode.schema_registration import Target
from penstock.error_frame import in_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Formats = dict[str, FormatChoice]


class BatchEncode:
    """Replaces columns of Arrow batches by their bytes, in a worker."""

    def __init__(self, encodes: dict[str, tuple[pa.DataType, Encode]]) -> None:
        self._encodes = encodes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches, encoded."""
        return map(self._encoded, batches)

    def _encoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, (type_, encode) in self._encodes.items():
            column = batch.column(name)
            column = column if column.type == type_ else column.cast(type_)
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, name, encode(column))
        return batch


class RecordEncodes:
    """The encodes of one sink's records: `value`, `key`, or both."""

    def __init__(self, formats: Formats, topic: str, columns: dict[str, str | None]) -> None:
        self._formats = formats
        self._topic = topic
        self._columns = columns
        self._made: tuple[StructType, BatchEncode] | None = None

    def __bool__(self) -> bool:
        return bool(self._formats)

    def name_value(self, column: str | None) -> None:
        """Set the column that messages about the value name; None for rows of several columns."""
        self._columns["value"] = column

    def batch_encode(self, records: StructType) -> BatchEncode:
        """Return what workers do; schemas are registered when the columns are seen for the first time."""
        if self._made is None or self._made[0] != records:
            self._made = (
                records,
                BatchEncode({part: self._encode(part, records) for part in self._formats}),
            )
        return self._made[1]

    def encoded(self, records: DataFrame) -> DataFrame:
        """Return the records with bytes for value and key."""
        run = in_worker(self.batch_encode(records.schema), "write")
        return records.mapInArrow(run, self.output(records.schema))

    def output(self, records: StructType) -> StructType:
        """Return the schema of encoded records."""
        return StructType(
            [
                StructField(field.name, BinaryType()) if field.name in self._formats else field
                for field in records
            ]
        )

    def _encode(self, part: str, records: StructType) -> tuple[pa.DataType, Encode]:
        type_ = to_arrow_type(records[part].dataType)
        target = Target(self._topic, part, self._columns.get(part) or "")
        return type_, column_encode(self._formats[part], type_, target)
