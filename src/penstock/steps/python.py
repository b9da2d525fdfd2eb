"""A step in Python: a function over whole Arrow tables, never row by row through a pickle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.error_frame import in_worker
from penstock.errors import RefusedError, TransientError
from penstock.pipeline import ORIGIN, Step
from penstock.pipeline.names import map_in_arrow
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function


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
                yield from _as_batches(_called(loaded, batch, path), path)

        return map_in_arrow(rows, in_worker(call, "step"), expected)

    def mixes(self) -> str | None:
        """Return None: Spark chooses how rows are split into tables; functions may not depend on it."""
        return None

    def traced(self, rows: DataFrame) -> DataFrame:
        """Return the function's result for each single row, next to that row's origin."""
        function, path = self.function, self.function.path
        given = rows.drop(*ORIGIN)
        made = self.schema_.ddl() if self.schema_ else given.schema
        origins = rows.select(*ORIGIN).schema
        expected = StructType([*rows.sparkSession.createDataFrame([], made).schema, *origins])

        def call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            loaded = function.load()
            for batch in batches:
                for row in (batch.slice(n, 1) for n in range(batch.num_rows)):
                    alone = row.drop_columns(list(ORIGIN))
                    for result in _as_batches(_called(loaded, alone, path), path):
                        yield _with_origin(result, row)

        return map_in_arrow(rows, in_worker(call, "step"), expected)


def _with_origin(result: pa.RecordBatch, row: pa.RecordBatch) -> pa.RecordBatch:
    first = pa.array([0] * result.num_rows, pa.int64())
    origin = [row.column(name).take(first) for name in ORIGIN]
    return pa.RecordBatch.from_arrays([*result.columns, *origin], [*result.schema.names, *ORIGIN])


def _called(function: Callable[..., Any], batch: pa.RecordBatch, path: str) -> object:
    try:
        return function(pa.Table.from_batches([batch]))
    except (TransientError, MemoryError):
        raise
    except Exception as error:  # the function is the user's: some row is what it cannot take
        raise RefusedError(f"{path}: {type(error).__name__}: {error}", stage="step") from error


def _as_batches(result: object, path: str) -> list[pa.RecordBatch]:
    if isinstance(result, pa.RecordBatch):
        return [result]
    if isinstance(result, pa.Table):
        return list(result.to_batches())
    raise TypeError(f"{path} returned {type(result).__name__}; a step returns a pyarrow.Table")
