"""Runs a Python parser over a batch of records and fits what it returns to the declared columns.

The fast way calls the parser for the whole batch and converts all rows at once. Only when something in
a batch is wrong are its records looked at one by one, so that a bad record never takes others along.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from penstock.decode.kernels.arrow import arrow_schema
from penstock.decode.kernels.failure import Failure
from penstock.decode.kernels.outcome import Decoded
from penstock.errors import TransientError, nearest
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function

Row = dict[str, Any]


@dataclass(frozen=True)
class _Parsed:
    """The rows of one record."""

    index: int
    rows: list[Row]


class ParserKernel:
    """A batch of records through one parser."""

    def __init__(self, function: Function, schema: Schema, columns: Sequence[str]) -> None:
        self._parse = function.load()
        self._schema = arrow_schema(schema)
        self._names = frozenset(schema.names)
        self._order = schema.names
        self._required = [field.name for field in schema.fields if field.required]
        self._columns = list(columns)

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows of the records that parse and fit, and a failure for each other record."""
        try:
            return self._all_at_once(batch)
        except TransientError:  # a registry that is away, say: no record is to blame
            raise
        except Exception:  # the parser is the user's: whatever it raises is some record's error
            return self._one_by_one(batch)

    def _all_at_once(self, batch: pa.RecordBatch) -> Decoded:
        arguments = [batch.column(name).cast(pa.string()).to_pylist() for name in self._columns]
        results = list(map(self._parse, *arguments))
        if set(map(type, results)) == {dict} and self._names.issuperset(
            chain.from_iterable(results)
        ):
            return Decoded(self._convert(results), ())
        parsed = [_Parsed(index, self._rows(result)) for index, result in enumerate(results)]
        return Decoded(self._convert(_rows_of(parsed)), (), _origins_of(parsed))

    def _one_by_one(self, batch: pa.RecordBatch) -> Decoded:
        parsed, failures = [], []
        columns = [batch.column(name) for name in self._columns]
        for index in range(batch.num_rows):
            try:
                arguments = [_text(column[index].as_py()) for column in columns]
                parsed.append(_Parsed(index, self._rows(self._parse(*arguments))))
            except TransientError:
                raise
            except Exception as error:
                failures.append(_failure(index, error))
        rows = self._fitted(parsed, failures)
        failures.sort(key=lambda failure: failure.index)
        bad = {failure.index for failure in failures}
        return Decoded(rows, failures, _origins_of(r for r in parsed if r.index not in bad))

    def _rows(self, result: Any) -> list[Row]:
        if type(result) is dict:
            return [self._named(result)]
        if result is None:
            return []
        if isinstance(result, tuple):
            return [self._from_tuple(result)]
        if isinstance(result, list):
            return [row for one in result for row in self._rows(one)]
        raise TypeError(
            f"the parser returned {type(result).__name__}; "
            "a row is a dict or a tuple, several are a list of them, None is no row"
        )

    def _named(self, row: Row) -> Row:
        if row.keys() <= self._names:
            return row
        unknown = next(name for name in row if name not in self._names)
        raise ValueError(
            f"the parser returned the column {unknown!r}, which is not declared; "
            f"{nearest(str(unknown), self._order)}"
        )

    def _from_tuple(self, row: tuple[Any, ...]) -> Row:
        if len(row) != len(self._order):
            raise ValueError(
                f"the parser returned {len(row)} values; the schema has {len(self._order)} columns"
            )
        return dict(zip(self._order, row, strict=True))

    def _fitted(self, records: list[_Parsed], failures: list[Failure]) -> pa.RecordBatch:
        """Convert all rows at once; where that fails, halve until the record is found."""
        try:
            return self._convert(_rows_of(records))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if len(records) <= 1:
                failures.extend(_failure(record.index, error) for record in records)
                return self._convert([])
        middle = len(records) // 2
        halves = [
            self._fitted(records[:middle], failures),
            self._fitted(records[middle:], failures),
        ]
        return pa.concat_batches(halves)

    def _convert(self, rows: list[Row]) -> pa.RecordBatch:
        batch = pa.RecordBatch.from_pylist(rows, schema=self._schema)
        for name in self._required:
            if batch.column(name).null_count:
                raise ValueError(f"the column {name!r} is required, and the parser gave no value")
        return batch


def _rows_of(records: Iterable[_Parsed]) -> list[Row]:
    return [row for record in records for row in record.rows]


def _origins_of(records: Iterable[_Parsed]) -> pa.Array:
    return pa.array([record.index for record in records for _ in record.rows], pa.int64())


def accepted_arguments(function: Callable[..., Any], path: str) -> int:
    """Return how many arguments a parser takes: one, two or three.

    >>> accepted_arguments(lambda value, key: {}, "module:parse")
    2
    """
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    if 1 <= len(needed) <= 3:
        return len(needed)
    raise ValueError(
        f"{path} takes {len(needed)} arguments; a parser takes one (value), two (value, key) "
        "or three (value, key, topic)"
    )


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _failure(index: int, error: Exception) -> Failure:
    return Failure(index, type(error).__name__, str(error) or type(error).__name__)
