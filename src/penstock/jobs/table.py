"""The table of a job: its columns, where its rows are kept, and a way to look at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.config import find_connection
from penstock.engine import sink_schema, spark_session
from penstock.errors import ConfigError
from penstock.pipeline import Opening, Pipeline, Sink
from penstock.pipeline.registry import component
from penstock.pipeline.schema import Schema

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

_MEMORY = "memory"


class Table:
    """A table for a job: columns, and what keeps them; in memory when nothing else is said.

    With `key` it keeps one row for each key. The columns may be written as `name type, ...`, or be those
    of an (empty) pandas DataFrame or Arrow table.

    >>> Table("symbol string, price double", key="symbol").definition("prices")
    {'memory': {'table': 'prices', 'mode': 'upsert', 'key': ['symbol']}}
    >>> Table(pa.table({"n": pa.array([], pa.int32())}), {"delta": "lake/n"}).columns
    'n int'
    """

    def __init__(
        self,
        columns: Any = None,
        into: str | Mapping[str, Any] | Sink | None = None,
        *,
        key: str | Sequence[str] = (),
    ) -> None:
        self.columns = None if columns is None else _ddl(columns)
        self.key = [key] if isinstance(key, str) else list(key)
        self._into = into
        self._memory_name = into if isinstance(into, str) else None
        self._reader: Reader | None = None

    @classmethod
    def of(cls, given: Any) -> Table:
        """Return the table that a person means: a table, a name, a sink, or a frame with columns."""
        if isinstance(given, Table):
            return given
        if isinstance(given, (str, Mapping, Sink)):
            return cls(None, given)
        if hasattr(given, "__arrow_c_stream__") or isinstance(given, pa.Schema):
            return cls(given)
        raise ConfigError(
            f"a table is the name of one in memory, a sink as in {{'delta': 'lake/trades'}}, a "
            f"penstock.Table or an empty DataFrame; {type(given).__name__} was given"
        )

    def definition(self, job: str) -> dict[str, Any] | Sink:
        """Return the sink, as a pipeline has it; a table without a name takes the job's."""
        if isinstance(self._into, Sink):
            self._refuse_key()
            return self._into
        keyed = {"mode": "upsert", "key": self.key} if self.key else {}
        if self._into is None or isinstance(self._into, str):
            self._memory_name = self._memory_name or job
            return {_MEMORY: {"table": self._memory_name, **keyed}}
        ((kind, options),) = self._into.items()
        if not keyed:
            return {kind: options}
        main = component("sink", kind).main_option
        return {kind: (dict(options) if isinstance(options, Mapping) else {main: options}) | keyed}

    @property
    def is_readable(self) -> bool:
        """Whether it is known how to read the rows."""
        return self._memory_name is not None or self._reader is not None

    def read_with(self, reader: Reader) -> Table:
        """Have something that reads the rows."""
        self._reader = reader
        return self

    def to_arrow(self) -> pa.Table:
        """Return all rows."""
        return self._rows(None)

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a DataFrame."""
        return self.to_arrow().to_pandas()

    def head(self, count: int = 5) -> pd.DataFrame:
        """Return some rows."""
        return self._rows(count).to_pandas()

    def __len__(self) -> int:
        if self._memory_name is not None:
            return int(self.to_arrow().num_rows)
        return self._reader.count() if self._reader else 0

    def __repr__(self) -> str:
        where = self._memory_name or self._into or "in memory"
        return f"<Table {where}: {self.columns or 'its own columns'}>"

    def _rows(self, count: int | None) -> pa.Table:
        if self._memory_name is not None:
            from penstock.sinks.memory import memory_table  # noqa: PLC0415

            found = memory_table(self._memory_name).to_arrow()
            found = found if found.num_columns else self._empty()
            return found if count is None else found.slice(0, count)
        return self._reader.rows(count) if self._reader else self._empty()

    def _empty(self) -> pa.Table:
        from penstock.decode.kernels.arrow import arrow_schema  # noqa: PLC0415

        columns = Schema.parse(self.columns) if self.columns else None
        return arrow_schema(columns).empty_table() if columns else pa.table({})

    def _refuse_key(self) -> None:
        if self.key:
            raise ConfigError(
                "the key of a table stands in its sink when one is given: "
                f"key={self.key!r} belongs into its options, with mode='upsert'"
            )


class Reader:
    """Reads the rows that a pipeline's sink outside of this process holds."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def rows(self, count: int | None) -> pa.Table:
        """Return all rows, or some."""
        found = self._frame()
        if found is None:
            return pa.table({})
        return (found if count is None else found.limit(count)).toArrow()

    def count(self) -> int:
        """Return how many rows there are."""
        found = self._frame()
        return 0 if found is None else found.count()

    def _frame(self) -> DataFrame | None:
        pipeline, spark = self._pipeline, spark_session()
        connection = pipeline.connection or find_connection(None)
        schema = sink_schema(pipeline, spark)
        return pipeline.sink.read_back(Opening(spark, schema, pipeline.name, connection))


def _ddl(columns: Any) -> str:
    if isinstance(columns, str):
        return Schema.parse(columns).ddl()
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    if not isinstance(columns, pa.Schema):
        pandas = type(columns).__module__.partition(".")[0] == "pandas"
        columns = (
            pa.Schema.from_pandas(columns, preserve_index=False)
            if pandas
            else pa.table(columns).schema
        )
    found = from_arrow_schema(_known(columns))
    fields = (f"`{field.name}` {field.dataType.simpleString()}" for field in found)
    return Schema.parse(", ".join(fields)).ddl()


def _known(schema: pa.Schema) -> pa.Schema:
    """An empty column of objects has no type in Arrow: pandas keeps text in such columns."""
    return pa.schema(
        [pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in schema]
    )
