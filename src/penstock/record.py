"""What Kafka holds, as one immutable value: every layer passes records in this form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from penstock.errors import PenstockError

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic. `timestamp` is in milliseconds since 1970, UTC.

    A record that could not be read has an `error`; its key and value are then as Kafka holds them.

    >>> Record("trades", 0, 7, key=b"A", value=b"1", timestamp=0).time.isoformat()
    '1970-01-01T00:00:00+00:00'
    """

    topic: str
    partition: int
    offset: int
    key: Any = None
    value: Any = None
    timestamp: int | None = None
    headers: Headers = ()
    error: PenstockError | None = None

    @property
    def time(self) -> datetime | None:
        """The timestamp as an aware datetime, or None where the record has none."""
        if self.timestamp is None:
            return None
        return datetime.fromtimestamp(self.timestamp / 1000, timezone.utc)
