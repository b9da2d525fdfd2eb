"""Places in a topic as people write them ('earliest', '-10', a time), and the offsets they mean."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Literal

from penstock.errors import ConfigError
from penstock.kafka.handle import Partition

if TYPE_CHECKING:
    from penstock.kafka.admin.admin import Admin
    from penstock.kafka.admin.lookup import Watermarks

Kind = Literal["earliest", "latest", "offset", "last", "time"]

ALLOWED = (
    "earliest, latest (or end), an offset (42), the last N of each partition (-10), "
    "a time (2024-05-01T12:00:00Z, UTC when it names no zone), milliseconds (@1714560000000), "
    "or an age (-30s, -5m, -2h, -1d)"
)
_WORDS: dict[str, Kind] = {
    "earliest": "earliest",
    "beginning": "earliest",
    "smallest": "earliest",
    "latest": "latest",
    "end": "latest",
    "largest": "latest",
}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Position:
    """A place in every partition: `value` is an offset, a count, or milliseconds since 1970."""

    kind: Kind
    value: int = 0

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read a position.

        >>> Position.parse("-10")
        Position(kind='last', value=10)
        >>> Position.parse("1970-01-01T00:00:01Z")
        Position(kind='time', value=1000)
        """
        if word := _WORDS.get(text.lower()):
            return cls(word)
        if text.isdecimal():
            return cls("offset", int(text))
        if match := re.fullmatch(r"-(\d+)([smhd]?)", text):
            number, unit = int(match[1]), match[2]
            if not unit:
                return cls("last", number)
            return cls("time", int((time.time() - number * _SECONDS[unit]) * 1000))
        if match := re.fullmatch(r"@(\d+)", text):
            return cls("time", int(match[1]))
        try:
            return cls("time", epoch_ms(datetime.fromisoformat(text.replace("Z", "+00:00"))))
        except ValueError:
            raise ConfigError(f"{text!r} is not a position; allowed: {ALLOWED}") from None

    def offsets(
        self, marks: Admin | Watermarks, partitions: Sequence[Partition]
    ) -> dict[Partition, int]:
        """Return the offset that this position means in each partition, within the existing records."""
        earliest, latest = marks.earliest(partitions), marks.latest(partitions)
        if self.kind == "earliest":
            return earliest
        if self.kind == "latest":
            return latest
        if self.kind == "time":
            return marks.offsets_at(self.value, partitions)
        return {p: self._inside(earliest[p], latest[p]) for p in partitions}

    def _inside(self, earliest: int, latest: int) -> int:
        wanted = latest - self.value if self.kind == "last" else self.value
        return min(max(wanted, earliest), latest)


def epoch_ms(moment: datetime) -> int:
    """Return milliseconds since 1970; a time that names no zone is in UTC.

    >>> epoch_ms(datetime(1970, 1, 1, 0, 0, 1))
    1000
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)
