"""Tables of any writer as rows of the declared columns: matched by name, each value exactly."""

from __future__ import annotations

import pyarrow as pa

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.outcome import MisfitError
from penstock.errors import nearest
from penstock.formats.limits import check_size
from penstock.pipeline.exact_cast import InexactError, exact_cast
from penstock.pipeline.schema import Schema

# A cell of a column that the message lacks takes memory, too.
_CELL = 8


class MessageTable:
    """The declared columns, and tables that fit them.

    >>> columns = MessageTable(Schema.parse("id bigint not null, name string"))
    >>> columns.rows(pa.table({"id": pa.array([1], pa.int32())})).to_pylist()
    [{'id': 1, 'name': None}]
    """

    def __init__(self, schema: Schema) -> None:
        self.arrow_schema = arrow_schema(schema)
        self._ddl = {field.name: field.type.ddl() for field in schema.fields}
        self._names = schema.names

    def rows(self, table: pa.Table) -> pa.RecordBatch:
        """Return the rows of a table, or raise a `MisfitError`."""
        self._check_names(table.column_names)
        check_size(self._cells(table), "a table")
        arrays = [self._column(table, field) for field in self.arrow_schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def size_of(self, table: pa.Table) -> int:
        """Return how many bytes its rows take, about."""
        return max(int(table.nbytes), self._cells(table))

    def _cells(self, table: pa.Table) -> int:
        return int(table.num_rows) * len(self._names) * _CELL

    def one_column(self, array: pa.Array) -> pa.Table:
        """Return a vector as a table of the only declared column."""
        if len(self._names) != 1:
            raise MisfitError(
                "WrongShape",
                f"found a vector or a scalar; the schema has {len(self._names)} columns, "
                "and a table or a mapping has names for them",
            )
        return pa.table([array], [self._names[0]])

    def _check_names(self, names: list[str]) -> None:
        unknown = next((name for name in names if name not in self._ddl), None)
        if unknown is not None:
            raise MisfitError(
                "UnknownField",
                f"the column {unknown!r} is not declared; {nearest(unknown, self._names)}",
            )
        if len(set(names)) < len(names):
            raise MisfitError("UnknownField", "two columns of the message have one name")

    def _column(self, table: pa.Table, field: pa.Field) -> pa.Array:
        if field.name not in table.column_names:
            column = pa.nulls(table.num_rows, field.type)
        else:
            column = self._cast(table.column(field.name), field)
        if not field.nullable and column.null_count:
            given = "null" if field.name in table.column_names else "nothing"
            declared = f"{self._ddl[field.name]} not null"
            raise MisfitError("MissingField", f"{field.name}: found {given}, declared {declared}")
        return column

    def _cast(self, column: pa.ChunkedArray, field: pa.Field) -> pa.Array:
        try:
            parts = [exact_cast(chunk, field.type) for chunk in _few_chunks(column)]
        except InexactError as error:
            where = f"{field.name}{error.where}"
            declared = self._ddl[field.name]
            message = f"{where}: found {column.type}, declared {declared}: {error}"
            raise MisfitError("WrongType", message) from None
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts or [pa.nulls(0, field.type)])


def _few_chunks(column: pa.ChunkedArray) -> list[pa.Array]:
    try:
        whole = column.combine_chunks()
    except pa.ArrowException:  # Arrow joins not every type
        return list(column.chunks)
    return list(whole.chunks) if isinstance(whole, pa.ChunkedArray) else [whole]
