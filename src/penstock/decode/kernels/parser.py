"""Runs a Python parser over a batch of records, one record at a time.

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

from penstock.decode.kernels.failure import Failure
from penstock.decode.kernels.fitting import MISFITS, Fitting, Row
from penstock.decode.kernels.outcome import Decoded
from penstock.errors import TransientError
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function


@dataclass(frozen=True)
class _Parsed:
    """The rows of one record."""

    index: int
    rows: list[Row]


class ParserKernel:
    """A batch of records through one parser."""

    def __init__(self, function: Function, schema: Schema, columns: Sequence[str]) -> None:
        self._parse = function.load()
        self._fitting = Fitting(schema)
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
        if set(map(type, results)) == {dict} and self._fitting.names.issuperset(
            chain.from_iterable(results)
        ):
            return Decoded(self._fitting.batch(results), ())
        parsed = [
            _Parsed(index, self._fitting.rows(result)) for index, result in enumerate(results)
        ]
        return Decoded(self._fitting.batch(_rows_of(parsed)), (), _origins_of(parsed))

    def _one_by_one(self, batch: pa.RecordBatch) -> Decoded:
        parsed, failures = [], []
        columns = [batch.column(name) for name in self._columns]
        for index in range(batch.num_rows):
            try:
                arguments = [_text(column[index].as_py()) for column in columns]
                parsed.append(_Parsed(index, self._fitting.rows(self._parse(*arguments))))
            except TransientError:
                raise
            except Exception as error:
                failures.append(failure(index, error))
        rows = self._fitted(parsed, failures)
        failures.sort(key=lambda failure: failure.index)
        bad = {failure.index for failure in failures}
        return Decoded(rows, failures, _origins_of(r for r in parsed if r.index not in bad))

    def _fitted(self, records: list[_Parsed], failures: list[Failure]) -> pa.RecordBatch:
        """Convert all rows at once; where that fails, halve until the record is found."""
        try:
            return self._fitting.batch(_rows_of(records))
        except MISFITS as error:
            if len(records) <= 1:
                failures.extend(
                    failure(record.index, self._fitting.explained(record.rows, error))
                    for record in records
                )
                return self._fitting.batch([])
        middle = len(records) // 2
        halves = [
            self._fitted(records[:middle], failures),
            self._fitted(records[middle:], failures),
        ]
        return pa.concat_batches(halves)


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


def failure(index: int, error: Exception) -> Failure:
    """Say what a parser's error means for one record."""
    return Failure(index, type(error).__name__, str(error) or type(error).__name__)
