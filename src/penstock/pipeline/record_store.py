"""A sink that stores whole records, as a topic does: what dead letters need of it beyond rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from penstock.pipeline.writer import Opening, Writer
    from penstock.record import Record


class StoredRecord(NamedTuple):
    """A record of the store; unsettled ones come after a write that has not ended."""

    record: Record
    is_settled: bool


class NewRecord(NamedTuple):
    """A record to store."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class RecordStore(ABC):
    """The records of one target, read and appended without Spark."""

    @abstractmethod
    def open(self, opening: Opening) -> Writer:
        """Return what writes rows with the columns key, value and headers.

        Its `prepare` makes the target ready for all that records of the source have, and more headers.
        """

    @abstractmethod
    def read(self) -> Iterator[StoredRecord]:
        """Return all records; of those that are unsettled only what may count already."""

    @abstractmethod
    def append(self, records: Iterable[NewRecord]) -> None:
        """Add records; return when they are safe."""
