"""One dead letter, as it is kept in a topic or a table; and the notes about letters, kept beside them.

A note has the shape of a letter: its stage says what was done, its error which letter it is about. So the
whole story of a letter lies in one place, whatever sink that is, and survives the machine that wrote it.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, NamedTuple

import msgspec

from penstock.record import Record

# What can happen to a letter; the other stages are where a record failed: decode, step, write.
PLANNED, REPLAYED, DROPPED = "planned", "replayed", "dropped"
_NOTES = (PLANNED, REPLAYED, DROPPED)
_PREFIX = "penstock."
Headers = list[tuple[str, "bytes | None"]]


class About(NamedTuple):
    """Which letter a note is about, and in which replay."""

    epoch: int
    batch: int
    replay: int = 0


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A bad record as it was, with where it came from and what was wrong with it.

    >>> DeadLetter(topic="orders", partition=0, offset=7, stage="decode").id
    'orders-0-7'
    """

    pipeline: str = ""
    epoch: int = 0
    batch: int = 0
    stage: str
    topic: str
    partition: int
    offset: int
    timestamp: datetime | None = None
    error_type: str = ""
    error: str = ""
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = []

    @property
    def id(self) -> str:
        """Where the record stood: its topic, partition and offset."""
        return f"{self.topic}-{self.partition}-{self.offset}"

    @property
    def is_note(self) -> bool:
        """Whether this is not a letter but says what was done with one."""
        return self.stage in _NOTES

    @property
    def about(self) -> About:
        """Of a note: the letter it is about."""
        return msgspec.json.decode(self.error, type=About)

    @property
    def identity(self) -> tuple[str, int, int]:
        """What tells letters apart: a record that failed again in a replay is another letter."""
        if self.is_note:
            return self.id, self.about.epoch, self.about.batch
        return self.id, self.epoch, self.batch

    def noted(self, stage: str, replay: int = 0, value: bytes | None = None) -> DeadLetter:
        """Return the note that something was done with this letter."""
        about = About(self.epoch, self.batch, replay)
        text = msgspec.json.encode(about).decode()
        return msgspec.structs.replace(
            self, stage=stage, error_type="Note", error=text, value=value
        )


def from_record(record: Record) -> DeadLetter | None:
    """Read a letter from a record of a dead-letter topic; None where it is somebody else's record."""
    kept = dict(record.headers)
    origin = {
        name.removeprefix(_PREFIX): (value or b"").decode()
        for name, value in kept.items()
        if name.startswith(_PREFIX)
    }
    if "stage" not in origin:
        return None
    own = [(name, value) for name, value in record.headers if not name.startswith(_PREFIX)]
    given: dict[str, Any] = {**origin, "timestamp": _moment(origin.get("timestamp"))}
    rest = {"key": record.key, "value": record.value, "headers": own}
    return msgspec.convert(given | rest, DeadLetter, strict=False)


def as_headers(letter: DeadLetter) -> Headers:
    """Return the headers of a letter's record: its own, then the origin."""
    told = msgspec.structs.asdict(letter)
    for name in ("key", "value", "headers"):
        del told[name]
    told["timestamp"] = letter.timestamp.strftime(_FORM) if letter.timestamp else ""
    return [*letter.headers, *((f"{_PREFIX}{name}", str(v).encode()) for name, v in told.items())]


_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    return datetime.strptime(text, _FORM).replace(tzinfo=timezone.utc)
