"""JSON with a declared schema, strictly: what does not fit is that record's error, never a null."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import pyarrow as pa
from pydantic import Field, field_validator
from pyspark.sql.types import StructType

from penstock.decode.kernels.json import JsonKernel
from penstock.decode.kernels.outcome import Decoded, Kernel
from penstock.decode.workers import ArrowDecode
from penstock.errors import ConfigError
from penstock.pipeline.schema import Schema


class JsonDecode(ArrowDecode):
    """One JSON object per record, into the declared columns; fields that are not declared are ignored.

    A value that does not fit its column, a number too large, a missing required field: each is an error
    of that record.
    """

    name = "json"

    schema_: Schema = Field(
        alias="schema",
        description="The columns, as `symbol string not null, price double` or as a mapping.",
    )

    @field_validator("schema_")
    @classmethod
    def _can_be_decoded(cls, schema: Schema) -> Schema:
        try:
            JsonKernel(schema)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return schema

    def columns(self) -> list[str]:
        """Return the value."""
        return ["value"]

    def kernel(self) -> Callable[[], Kernel]:
        """Return what makes the kernel."""
        return partial(_OverRecords, self.schema_)

    def row_schema(self) -> StructType:
        """Return the declared schema."""
        return cast(StructType, StructType.fromDDL(self.schema_.ddl()))


class _OverRecords:
    """The kernel, applied to the values of whole records."""

    def __init__(self, schema: Schema) -> None:
        self._kernel = JsonKernel(schema)

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        rows, failures = self._kernel.decode(batch.column("value"))
        if not failures:
            return Decoded(rows, failures)
        bad = {failure.index for failure in failures}
        good = [index for index in range(batch.num_rows) if index not in bad]
        return Decoded(rows, failures, pa.array(good, pa.int64()))
