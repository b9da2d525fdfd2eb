"""A step in Python: a function over whole Arrow tables, never row by row through a pickle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pyarrow as pa
from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.error_frame import in_worker
from penstock.errors import FormatError, RefusedError, TransientError, nearest
from penstock.pipeline import ORIGIN, Step
from penstock.pipeline.exact_cast import InexactError, table_cast
from penstock.pipeline.names import map_in_arrow
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function


class PythonStep(Step):
    """A function of one `pyarrow.Table` that returns a `pyarrow.Table`.

    It returns all columns, in any order: they are found by their names. Values are cast to the types of
    the columns if they stay the same, as whole numbers that pandas made floating-point; if not, the
    record is refused.
    """

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
        function, path = self.function, self.function.path
        declared = self._declared()
        columns = to_arrow_schema(declared) if declared else None

        def call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            loaded = function.load()
            for batch in batches:
                yield from _as_batches(_called(loaded, batch, path), columns or batch.schema, path)

        return map_in_arrow(rows, in_worker(call, "step"), declared or rows.schema)

    def mixes(self) -> str | None:
        """Return None: Spark chooses how rows are split into tables; functions may not depend on it."""
        return None

    def traced(self, rows: DataFrame) -> DataFrame:
        """Return the function's result for each single row, next to that row's origin."""
        function, path = self.function, self.function.path
        declared = self._declared()
        columns = to_arrow_schema(declared) if declared else None
        origins = rows.select(*ORIGIN).schema
        expected = StructType([*(declared or rows.drop(*ORIGIN).schema), *origins])

        def call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            loaded = function.load()
            for batch in batches:
                for row in (batch.slice(n, 1) for n in range(batch.num_rows)):
                    alone = row.drop_columns(list(ORIGIN))
                    made = _called(loaded, alone, path)
                    for result in _as_batches(made, columns or alone.schema, path):
                        yield _with_origin(result, row)

        return map_in_arrow(rows, in_worker(call, "step"), expected)

    def _declared(self) -> StructType | None:
        return cast(StructType, StructType.fromDDL(self.schema_.ddl())) if self.schema_ else None


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


def _as_batches(result: object, columns: pa.Schema, path: str) -> list[pa.RecordBatch]:
    if not isinstance(result, pa.RecordBatch | pa.Table):
        raise TypeError(f"{path} returned {type(result).__name__}; a step returns a pyarrow.Table")
    if not result.num_rows:
        return []
    fitted = _fitted(result, columns, path)
    return [fitted] if isinstance(fitted, pa.RecordBatch) else list(fitted.to_batches())


def _fitted(result: pa.Table, columns: pa.Schema, path: str) -> pa.Table:
    """Return a result with these columns, by name; Spark takes them by place, and casts none."""
    if result.schema.names != columns.names:
        result = result.select(_places(result.schema.names, columns.names, path))
    if result.schema.types == columns.types:
        return result
    arrays = [
        _cast(array, field, path) for array, field in zip(result.columns, columns, strict=True)
    ]
    return type(result).from_arrays(arrays, names=columns.names)


def _places(given: list[str], wanted: list[str], path: str) -> list[int]:
    if unknown := [name for name in given if name not in wanted]:
        raise _refused(
            f"{path} returned {_listed(unknown)}, which the step does not have; "
            f"{nearest(unknown[0], wanted)}; other columns are declared by 'schema'"
        )
    if missing := [name for name in wanted if name not in given]:
        raise _refused(f"{path} did not return {_listed(missing)}, which the step has")
    if twice := [name for name in wanted if given.count(name) > 1]:
        raise _refused(f"{path} returned {_listed(twice)} more than once")
    return [given.index(name) for name in wanted]


def _cast(
    column: pa.Array | pa.ChunkedArray, field: pa.Field, path: str
) -> pa.Array | pa.ChunkedArray:
    """Return a column in its type, if no value changes by that; text is not read as anything else."""
    wanted = _nullable(field.type)
    if column.type in (field.type, wanted):
        return column
    if column.null_count == len(column):  # of any type: pandas has NaN for them
        return pa.nulls(len(column), wanted)
    if _is_text(column.type) and not _is_text(wanted):
        raise _refused(f"{path}: the column {field.name!r} is text, and the step has {wanted}")
    try:
        if isinstance(column, pa.Array):
            return table_cast(column, wanted)
        return pa.chunked_array([table_cast(chunk, wanted) for chunk in column.chunks], wanted)
    except (InexactError, FormatError) as error:
        where = error.where if isinstance(error, InexactError) else ""
        raise _refused(
            f"{path}: the column {field.name!r}{where} is not {wanted}: {error}"
        ) from error


def _nullable(given: pa.DataType) -> pa.DataType:
    """Return the type without what it says of nulls inside: Spark does not look at that."""
    if pa.types.is_struct(given):
        return pa.struct(
            [field.with_nullable(True).with_type(_nullable(field.type)) for field in given]
        )
    if pa.types.is_map(given):
        return pa.map_(_nullable(given.key_type), _nullable(given.item_type))
    if pa.types.is_list(given):
        field = given.value_field
        return pa.list_(field.with_nullable(True).with_type(_nullable(field.type)))
    return given


def _is_text(given: pa.DataType) -> bool:
    return bool(pa.types.is_string(given) or pa.types.is_large_string(given))


def _listed(names: list[str]) -> str:
    return f"the column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"


def _refused(message: str) -> RefusedError:
    return RefusedError(message, stage="step")
