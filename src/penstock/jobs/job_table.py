"""The table of a job: its columns, where its rows are stored, and how to read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from penstock.engine import sink_schema, spark_session
from penstock.engine.bindings import Bindings
from penstock.engine.stateful.plan import plan_of, with_bound_decode
from penstock.errors import ConfigError
from penstock.pipeline import Opening, Pipeline, Sink
from penstock.pipeline.names import column_names, quoted
from penstock.pipeline.registry import component
from penstock.pipeline.schema import Schema

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

_MEMORY = "memory"


class Table:
    """A table for a job: its columns and its sink; in memory by default.

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
        self.key = column_names(key) if isinstance(key, str) else list(key)
        self._into = into
        self._memory_name = into if isinstance(into, str) else None
        self._reader: Reader | None = None

    @classmethod
    def of(cls, given: Any) -> Table:
        """Return the table of an argument: a table, a name, a sink, or a frame with columns."""
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
        """Return the sink of the pipeline; a table without a name takes the job's."""
        if isinstance(self._into, Sink):
            if self.key:
                raise ConfigError(
                    "a table with a sink has its key in the sink: "
                    f"put key={self.key!r} into its options, with mode='upsert'"
                )
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
        """Return whether the rows can be read."""
        return self._memory_name is not None or self._reader is not None

    def read_with(self, reader: Reader) -> Table:
        """Use this reader for the rows, and return the table."""
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

            rows = memory_table(self._memory_name).to_arrow()
            rows = rows if rows.num_columns else self._empty()
            return rows if count is None else rows.slice(0, count)
        return self._reader.rows(count) if self._reader else self._empty()

    def _empty(self) -> pa.Table:
        from penstock.decode.kernels.arrow_kernel import arrow_schema  # noqa: PLC0415

        columns = Schema.parse(self.columns) if self.columns else None
        return arrow_schema(columns).empty_table() if columns else pa.table({})


class Reader:
    """Reads the rows of a sink outside of this process."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._bindings = Bindings()

    def rows(self, count: int | None) -> pa.Table:
        """Return all rows, or some."""
        with self._frame() as frame:
            if frame is None:
                return pa.table({})
            return (frame if count is None else frame.limit(count)).toArrow()

    def count(self) -> int:
        """Return the number of rows."""
        with self._frame() as frame:
            return 0 if frame is None else frame.count()

    @contextmanager
    def _frame(self) -> Iterator[DataFrame | None]:
        pipeline, spark = self._pipeline, spark_session()
        connection = pipeline.find_connection()
        self._bindings.use(spark.sparkContext)
        plan = plan_of(with_bound_decode(pipeline), self._bindings.bind)
        schema = sink_schema(plan, spark)
        with pipeline.sink.open(Opening(spark, pipeline.name, connection)) as writer:
            yield writer.read_back(schema)


def _ddl(columns: Any) -> str:
    if isinstance(columns, str):
        return Schema.parse(columns).ddl()
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    if not isinstance(columns, pa.Schema):
        if type(columns).__module__.partition(".")[0] == "pandas":
            columns = pa.Schema.from_pandas(columns, preserve_index=False)
        else:
            columns = pa.table(columns).schema
    schema = from_arrow_schema(_known(columns))
    fields = (f"{quoted(field.name)} {_type_text(field.dataType)}" for field in schema)
    return Schema.parse(", ".join(fields)).ddl()


def _type_text(kind: DataType) -> str:
    """Return a type as schema text, with the names inside of it quoted: `simpleString` does not."""
    if isinstance(kind, StructType):
        inner = (f"{quoted(field.name)}: {_type_text(field.dataType)}" for field in kind)
        return f"struct<{', '.join(inner)}>"
    if isinstance(kind, ArrayType):
        return f"array<{_type_text(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{_type_text(kind.keyType)}, {_type_text(kind.valueType)}>"
    return kind.simpleString()


def _known(schema: pa.Schema) -> pa.Schema:
    """Return the columns with text for those without a type: pandas has text in such columns."""
    return pa.schema(
        [pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in schema]
    )
