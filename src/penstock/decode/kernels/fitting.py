"""Conversion of a parser's result to the declared columns, with messages for what does not fit.

A parser may return rows (dicts, tuples, lists of them) or tables (pandas, Arrow, polars, anything with
the Arrow interface). Types are checked, never inferred, and no value is changed: text is not a number,
1.5 is not an integer.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import pyarrow as pa

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.unchanged import array_of
from penstock.errors import nearest
from penstock.pipeline.exact_cast import InexactError, table_cast
from penstock.pipeline.schema import Schema

Row = dict[str, Any]
MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_SHOWN = 200
_LOOKED_AT = 100


class Fitting:
    """The declared columns, and what fits them.

    >>> fitting = Fitting(Schema.parse("id bigint, name string"))
    >>> fitting.batch(fitting.rows([(1, "a"), {"id": 2}])).to_pylist()
    [{'id': 1, 'name': 'a'}, {'id': 2, 'name': None}]
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = arrow_schema(schema)
        self._types = {field.name: field.type.ddl() for field in schema.fields}
        self._order = schema.names
        self._required = [field.name for field in schema.fields if field.required]
        self.names = frozenset(schema.names)

    def rows(self, result: Any) -> list[Row]:
        """Return the rows of a parser's result for one record."""
        if type(result) is dict:
            return [self._named(result)]
        if result is None:
            return []
        if isinstance(result, tuple):
            return [self._from_tuple(result)]
        if isinstance(result, list):
            return [row for one in result for row in self.rows(one)]
        if _is_table(result):
            rows: list[Row] = self.table(result).to_pylist()
            return rows
        if isinstance(result, Mapping):
            return [self._named(dict(result))]
        raise TypeError(
            f"the parser returned {type(result).__name__}; a row is a dict or a tuple, several are "
            "a list of them or a table (pandas, Arrow), None means no row"
        )

    def batch(self, rows: list[Row]) -> pa.RecordBatch:
        """Return rows as one batch of the declared types."""
        arrays = [array_of(_values(rows, field.name), field.type) for field in self._schema]
        return self._complete(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def table(self, result: Any) -> pa.RecordBatch:
        """Return a table, or rows, as one batch of the declared types."""
        if not _is_table(result):
            return self.batch(self.rows(result))
        try:
            arrow_table = self._as_arrow(result)
            arrays = [self._column(arrow_table, field) for field in self._schema]
            return self._complete(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        except MISFITS as error:
            raise self.explained(_first_rows(result), error) from None

    def explained(self, rows: list[Row], error: Exception) -> Exception:
        """Return the error with the row that it is about."""
        for row in rows:
            for name, value in row.items():
                if name not in self.names:
                    return error
                try:
                    array_of([value], self._schema.field(name).type)
                except MISFITS:
                    return ValueError(
                        f"the column {name!r}: {_shown(value)} does not fit {self._types[name]}; "
                        f"the row: {_shown(row)}"
                    )
            if any(row.get(name) is None for name in self._required):
                return ValueError(f"{error}; the row: {_shown(row)}")
        return error

    def _as_arrow(self, result: Any) -> pa.Table:
        if not _is_pandas(result):
            arrow_table = pa.table(result)
            self._refuse_unknown(arrow_table.column_names)
            return arrow_table
        self._refuse_unknown(list(result.columns))
        names = list(map(str, result.columns))
        return pa.table([self._of_series(*each) for each in result.items()], names)

    def _of_series(self, name: str, series: Any) -> pa.Array:
        if series.dtype != object:
            return pa.Array.from_pandas(series)
        return array_of(series, self._schema.field(name).type, from_pandas=True)

    def _column(self, arrow_table: pa.Table, field: pa.Field) -> pa.Array:
        if field.name not in arrow_table.column_names:
            return pa.nulls(arrow_table.num_rows, field.type)
        given = arrow_table.column(field.name)
        if given.null_count == len(given):  # of any type: pandas has NaN for them
            return pa.nulls(len(given), field.type)
        if _is_text(given.type) and not _is_text(field.type):
            raise TypeError(
                f"the column {field.name!r} is text, and the table has {self._types[field.name]}"
            )
        try:
            parts = [table_cast(chunk, field.type) for chunk in given.chunks]
        except InexactError as error:
            raise ValueError(
                f"the column {field.name!r}{error.where}: {given.type} does not fit "
                f"{self._types[field.name]}: {error}"
            ) from None
        return pa.concat_arrays(parts or [pa.nulls(0, field.type)])

    def _complete(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name in self._required:
            if batch.column(name).null_count:
                raise ValueError(f"the column {name!r} is required, and the parser gave no value")
        return batch

    def _refuse_unknown(self, names: list[str]) -> None:
        unknown = next((name for name in names if name not in self.names), None)
        if unknown is not None:
            raise ValueError(
                f"the parser returned the column {unknown!r}, which is not declared; "
                f"{nearest(str(unknown), self._order)}"
            )

    def _named(self, row: Row) -> Row:
        if not row.keys() <= self.names:
            self._refuse_unknown(list(row))
        return row

    def _from_tuple(self, row: tuple[Any, ...]) -> Row:
        if len(row) != len(self._order):
            raise ValueError(
                f"the parser returned {len(row)} values; the schema has {len(self._order)} columns: "
                f"{', '.join(self._order)}"
            )
        return dict(zip(self._order, row, strict=True))


def _is_table(result: Any) -> bool:
    return hasattr(result, "__arrow_c_stream__") or isinstance(result, pa.RecordBatch)


def _first_rows(result: Any) -> list[Row]:
    """Return some rows for an error message: a large table that does not fit is halved and retried."""
    few = result[:_LOOKED_AT]
    rows: list[Row] = few.to_dict("records") if _is_pandas(few) else pa.table(few).to_pylist()
    return rows


def _is_pandas(result: Any) -> bool:
    return type(result).__module__.partition(".")[0] == "pandas"


def _values(rows: list[Row], name: str) -> list[Any]:
    try:
        return list(map(itemgetter(name), rows))  # the fastest, where no row lacks the column
    except KeyError:
        return [row.get(name) for row in rows]


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _shown(value: Any) -> str:
    signs = (sign if sign.isprintable() else " " for sign in repr(value)[: 2 * _SHOWN])
    text = "".join(signs)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
