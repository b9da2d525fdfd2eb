"""The result of decoding a batch of records: rows, and the bad records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import RecordError
from penstock.formats.limits import decoded_limit


class MisfitError(RecordError):
    """One record does not decode; `error_type` is the short name that dead letters carry."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


@dataclass(frozen=True)
class Failure:
    """One record that could not be decoded: its index in the batch, and why."""

    index: int
    error_type: str
    message: str


@dataclass(frozen=True)
class Decoded:
    """The result of a batch of records.

    `origins` has, for each row, the index of its record; None where row and record are one to one.
    """

    rows: pa.RecordBatch
    failures: Sequence[Failure]
    origins: pa.Array | None = None


Kernel = Callable[[pa.RecordBatch], Decoded]


class BatchTooLargeError(Exception):
    """The rows of a batch would take too much memory: it is to be decoded in parts."""


class Volume:
    """Counts the memory of a batch's rows while they are made, where a short record can be many rows.

    The limit is that of one value: a batch of one record is never too large.
    """

    def __init__(self) -> None:
        self._most = decoded_limit()
        self._bytes = 0
        self._records = 0

    def add(self, size: int) -> None:
        """Add the rows of one record, or raise."""
        self._bytes += size
        self._records += 1
        if self._records > 1 and self._bytes > self._most:
            raise BatchTooLargeError


def in_parts(kernel: Kernel, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Decoded]]:
    """Decode a batch; halve it while its rows take too much memory."""
    try:
        decoded = kernel(batch)
    except BatchTooLargeError:
        middle = batch.num_rows // 2
        yield from in_parts(kernel, batch.slice(0, middle))
        yield from in_parts(kernel, batch.slice(middle))
    else:
        yield batch, decoded
