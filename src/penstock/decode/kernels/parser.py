"""Runs a Python parser over a batch of records: one record at a time, or as whole tables.

The fast path calls the parser for the whole batch and converts all rows at once. Only when something in
a batch is wrong are its records checked one by one, so that a bad record never affects the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from penstock.decode.kernels.fitting import MISFITS, Fitting, Row
from penstock.decode.kernels.outcome import Decoded, Failure
from penstock.errors import TransientError
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function

# The index of a record in its batch, and its rows.
_Parsed = tuple[int, list[Row]]
TableForm = Literal["pandas", "arrow"]
Input = Literal["text", "bytes"]
_TABLE_NAMES = {"value": "payload", "key": "key", "topic": "topic"}


class ParserKernel:
    """A batch of records through one parser."""

    def __init__(
        self, function: Function, schema: Schema, columns: Sequence[str], given: Input = "text"
    ) -> None:
        self._parse = function.load()
        self._fitting = Fitting(schema)
        self._columns = list(columns)
        self._given = given

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows of the records that parse and fit, and a failure for each other record."""
        try:
            return self._all_at_once(batch)
        except TransientError:  # for example an unavailable registry: not the fault of a record
            raise
        except Exception:  # the parser is the user's: whatever it raises is some record's error
            return self._one_by_one(batch)

    def _all_at_once(self, batch: pa.RecordBatch) -> Decoded:
        arguments = [_given(batch.column(name), self._given).to_pylist() for name in self._columns]
        results = list(map(self._parse, *arguments))
        if set(map(type, results)) == {dict} and self._fitting.names.issuperset(
            chain.from_iterable(results)
        ):
            return Decoded(self._fitting.batch(results), ())
        parsed = [(index, self._fitting.rows(result)) for index, result in enumerate(results)]
        return Decoded(self._fitting.batch(_rows_of(parsed)), (), _origins_of(parsed))

    def _one_by_one(self, batch: pa.RecordBatch) -> Decoded:
        parsed, failures = [], []
        columns = [batch.column(name) for name in self._columns]
        for index in range(batch.num_rows):
            try:
                arguments = [_argument(column[index].as_py(), self._given) for column in columns]
                parsed.append((index, self._fitting.rows(self._parse(*arguments))))
            except TransientError:
                raise
            except Exception as error:
                failures.append(_failure(index, error))
        rows = self._fitted(parsed, failures)
        failures.sort(key=lambda failure: failure.index)
        bad = {failure.index for failure in failures}
        return Decoded(rows, failures, _origins_of(each for each in parsed if each[0] not in bad))

    def _fitted(self, records: list[_Parsed], failures: list[Failure]) -> pa.RecordBatch:
        """Convert all rows at once; where that fails, halve until the record is found."""
        try:
            return self._fitting.batch(_rows_of(records))
        except MISFITS as error:
            if len(records) <= 1:
                failures.extend(
                    _failure(index, self._fitting.explained(rows, error)) for index, rows in records
                )
                return self._fitting.batch([])
        middle = len(records) // 2
        halves = [
            self._fitted(records[:middle], failures),
            self._fitted(records[middle:], failures),
        ]
        return pa.concat_batches(halves)


class TableParserKernel:
    """A batch of records, as one table with the columns payload, key and topic, through a parser."""

    def __init__(
        self, function: Function, schema: Schema, form: TableForm, given: Input = "text"
    ) -> None:
        self._parse = function.load()
        self._fitting = Fitting(schema)
        self._form = form
        self._given = given

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows of the records that parse and fit, and a failure for each other record."""
        failures: list[Failure] = []
        return Decoded(self._rows(batch, 0, failures), failures)

    def _rows(self, batch: pa.RecordBatch, first: int, failures: list[Failure]) -> pa.RecordBatch:
        if not batch.num_rows:
            return self._fitting.batch([])
        try:
            return self._fitting.table(self._parse(self._as_table(batch)))
        except TransientError:
            raise
        except Exception as error:  # the parser is the user's
            if batch.num_rows == 1:
                failures.append(_failure(first, error))
                return self._fitting.batch([])
        middle = batch.num_rows // 2
        halves = [
            self._rows(batch.slice(0, middle), first, failures),
            self._rows(batch.slice(middle), first + middle, failures),
        ]
        return pa.concat_batches(halves)

    def _as_table(self, batch: pa.RecordBatch) -> Any:
        columns = {new: _given(batch.column(old), self._given) for old, new in _TABLE_NAMES.items()}
        table = pa.table(columns)
        return table.to_pandas() if self._form == "pandas" else table


def _rows_of(records: Iterable[_Parsed]) -> list[Row]:
    return [row for _, rows in records for row in rows]


def _origins_of(records: Iterable[_Parsed]) -> pa.Array:
    return pa.array([index for index, rows in records for _ in rows], pa.int64())


def accepted_arguments(function: Callable[..., Any], path: str) -> int:
    """Return how many arguments a parser takes: one, two or three."""
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    if 1 <= len(needed) <= 3:
        return len(needed)
    raise ValueError(
        f"{path} takes {len(needed)} arguments; a parser takes one (value), two (value, key) "
        "or three (value, key, topic)"
    )


def _argument(value: Any, given: Input) -> Any:
    return value.decode() if isinstance(value, bytes) and given == "text" else value


def _given(column: pa.Array, given: Input) -> pa.Array:
    """Return a column as the parser gets it; topics are always text."""
    return column.cast(pa.string()) if given == "text" else column


def _failure(index: int, error: Exception) -> Failure:
    return Failure(index, type(error).__name__, str(error) or type(error).__name__)
