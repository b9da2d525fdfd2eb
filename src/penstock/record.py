"""A record of Kafka as one immutable value: every layer passes records in this form."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from confluent_kafka import Message
from msgspec import Struct

from penstock.errors import PenstockError

Headers = tuple[tuple[str, bytes | None], ...]
Fields = tuple[str, int, int, Any, Any, "int | None", Headers, "PenstockError | None"]


class Record(Struct, frozen=True, eq=False, gc=False):
    """One record of a topic. `timestamp` is in milliseconds since 1970, UTC.

    A record that could not be decoded has an `error`; its key and value are then the original bytes.

    It wraps librdkafka's message: a field is read when it is accessed, because a million
    records a second leave no time to copy eight fields each.

    >>> record = Record.of("trades", 0, 7, key=b"A", value=b"1", timestamp=0)
    >>> record.time.isoformat()
    '1970-01-01T00:00:00+00:00'
    """

    message: Message
    error: PenstockError | None = None

    @classmethod
    def of(  # noqa: PLR0917 - the fields in their order
        cls,
        topic: str,
        partition: int,
        offset: int,
        key: Any = None,
        value: Any = None,
        timestamp: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        error: PenstockError | None = None,
    ) -> Record:
        """Create a record for a test or an example."""
        moment = (0, 0) if timestamp is None else (1, timestamp)
        message = Message(topic, partition, offset, key, value, list(headers), None, moment)
        return record_of(message, error)

    @property
    def topic(self) -> str:
        """Return the topic."""
        return self.message.topic()  # type: ignore[return-value]  # None only for events

    @property
    def partition(self) -> int:
        """Return the partition of the topic."""
        return self.message.partition()  # type: ignore[return-value]

    @property
    def offset(self) -> int:
        """Return the offset in the partition."""
        return self.message.offset()  # type: ignore[return-value]

    @property
    def key(self) -> Any:
        """Return the key: bytes, or the value decoded by the key's format."""
        return self.message.key()

    @property
    def value(self) -> Any:
        """Return the value: bytes, or the value decoded by the format."""
        return self.message.value()

    @property
    def timestamp(self) -> int | None:
        """Return milliseconds since 1970, UTC, or None if the record has no timestamp."""
        kind, milliseconds = self.message.timestamp()
        return milliseconds if kind else None

    @property
    def headers(self) -> Headers:
        """Return names and values, in order; a name may occur twice."""
        return tuple(self.message.headers() or ())  # type: ignore[arg-type]

    @property
    def time(self) -> datetime | None:
        """Return the timestamp as an aware datetime, or None if the record has none."""
        if self.timestamp is None:
            return None
        return datetime.fromtimestamp(self.timestamp / 1000, timezone.utc)

    def _fields(self) -> Fields:
        where = (self.topic, self.partition, self.offset)
        return (*where, self.key, self.value, self.timestamp, self.headers, self.error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        names = ("topic", "partition", "offset", "key", "value", "timestamp", "headers", "error")
        shown = zip(names, self._fields(), strict=True)
        return f"Record({', '.join(f'{name}={value!r}' for name, value in shown)})"


class _FailedRecord(Record, frozen=True, eq=False, gc=True):
    """A record with an error: a raised error refers to frames that refer to the record, in a cycle."""


def record_of(message: Message, error: PenstockError | None) -> Record:
    """Return the record of a message that may have an error, in a form that the collector can free."""
    return Record(message) if error is None else _FailedRecord(message, error)
