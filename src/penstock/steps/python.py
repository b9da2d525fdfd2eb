"""A step in Python: a function over whole Arrow tables, never row by row through a pickle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import Field

from penstock.pipeline import Step
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PythonStep(Step):
    """A function of one `pyarrow.Table` that returns a `pyarrow.Table`."""

    name = "python"
    main_option = "function"

    function: Function = Field(description="The function, as `module:function`.")
    schema_: Schema | None = Field(
        default=None,
        alias="schema",
        description="What it returns; default: the columns it is given.",
    )

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the rows that the function returns."""
        function = self.function
        expected = self.schema_.ddl() if self.schema_ else rows.schema
        path = function.path

        def call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            loaded = function.load()
            for batch in batches:
                yield from _as_batches(loaded(pa.Table.from_batches([batch])), path)

        return rows.mapInArrow(call, expected)


def _as_batches(result: object, path: str) -> list[pa.RecordBatch]:
    if isinstance(result, pa.RecordBatch):
        return [result]
    if isinstance(result, pa.Table):
        return list(result.to_batches())
    raise TypeError(f"{path} returned {type(result).__name__}; a step returns a pyarrow.Table")
