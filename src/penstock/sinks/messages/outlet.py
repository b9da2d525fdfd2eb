"""A connection to a system of messages, in a task; and what each task does with its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from typing_extensions import Self

from penstock.errors import RefusedError
from penstock.pipeline import ORIGIN
from penstock.sinks.messages.record_encodes import BatchEncode

# What a task reports of each row that was refused.
OUTCOME = "topic string, partition int, offset bigint, error_type string, error string"
_SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "error_type": pa.string(),
        "error": pa.string(),
    }
)
# What of a system's answer is in a dead letter.
_LONGEST = 4_000


class Refusal(NamedTuple):
    """One row of those that were given to `send`, refused by the system for what is in it."""

    row: int
    error_type: str
    error: str


class Outlet(ABC):
    """A connection to a system, opened in a task."""

    @abstractmethod
    def send(self, rows: pa.RecordBatch) -> Iterable[Refusal]:
        """Send rows, the columns of the message and those of its ORIGIN where they are known.

        Returns only when the system has every row that is not refused.

        Raises
        ------
        TransientError
            When the system is away: the batch is written again later.
        ConfigError
            When a setting is wrong, which waiting does not change.
        """

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Close the connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Opener = Callable[[], AbstractContextManager[Outlet]]


@dataclass(frozen=True)
class Sending:
    """What each task does: it opens an outlet with its first row, and returns what was refused."""

    open: Opener
    encode: BatchEncode | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send the rows."""
        encoded = iter(batches if self.encode is None else self.encode(batches))
        first = next((batch for batch in encoded if batch.num_rows), None)
        if first is None:
            return
        with self.open() as outlet:
            yield from _refused(first, outlet.send(first))
            for batch in encoded:
                if batch.num_rows:
                    yield from _refused(batch, outlet.send(batch))


def _refused(rows: pa.RecordBatch, refusals: Iterable[Refusal]) -> Iterator[pa.RecordBatch]:
    refused = [*refusals]
    if not refused:
        return
    if ORIGIN[0] not in rows.schema.names:
        # Which record it was is found by writing parts of the batch.
        raise RefusedError(refused[0].error[:_LONGEST])
    at = pa.array([refusal.row for refusal in refused], pa.int64())
    places = [rows.column(name).take(at) for name in ORIGIN]
    kinds = [refusal.error_type for refusal in refused]
    texts = [refusal.error[:_LONGEST] for refusal in refused]
    reasons = [pa.array(kinds, pa.string()), pa.array(texts, pa.string())]
    yield pa.RecordBatch.from_arrays([*places, *reasons], schema=_SCHEMA)
