"""One dead letter, as it is stored in a topic or a table; and the notes about letters, next to them.

A note has the shape of a letter: its stage says what was done, its error which letter it is about. So the
whole story of a letter is in one place, whatever sink that is, and survives the machine that wrote it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

import msgspec

from penstock.pipeline import CLAIMED
from penstock.record import Record

# What can happen to a letter; other stages are where a record failed: import, decode, step, write, late.
# A plan names the letters of a replay; it is begun once no other replay has one of them, or released.
PLANNED, BEGUN, RELEASED, REPLAYED, DROPPED = "planned", "begun", "released", "replayed", "dropped"
_NOTES = (PLANNED, BEGUN, RELEASED, REPLAYED, DROPPED)
# The stage of what is among the letters and cannot be read as one.
UNREADABLE = "unreadable"
# The stage of what an import could not make a record of: it was in no topic before this one.
IMPORTED = "import"
Headers = list[tuple[str, "bytes | None"]]


class About(NamedTuple):
    """Which letter a note is about, in which replay, and from which state folder that is run."""

    epoch: int
    batch: int
    replay: int = 0
    owner: str = ""


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
    # Which of the messages that a flow made of the record; empty where it is the record as a whole.
    part: str = ""

    @property
    def id(self) -> str:
        """Return topic, partition and offset of the record, and which part of it this is."""
        whole = f"{self.topic}-{self.partition}-{self.offset}"
        return f"{whole}.{self.part}" if self.part else whole

    @property
    def full_id(self) -> str:
        """Return the id with epoch and batch: a record may have failed more than once."""
        return f"{self.id}~{self.epoch}~{self.batch}"

    @property
    def is_note(self) -> bool:
        """Return whether this is not a letter but a note about one."""
        return self.stage in _NOTES

    @property
    def is_readable(self) -> bool:
        """Return whether the record's origin is known."""
        return self.stage != UNREADABLE

    @property
    def was_record(self) -> bool:
        """Return whether it was in a topic before it failed, so that it can be read as it was there."""
        return self.stage != IMPORTED

    @property
    def about(self) -> About:
        """Return the letter that a note is about."""
        return msgspec.json.decode(self.error, type=About)

    @property
    def identity(self) -> tuple[str, int, int]:
        """Return a unique key: a record that failed again in a replay is another letter."""
        if self.is_note:
            return self.id, self.about.epoch, self.about.batch
        return self.id, self.epoch, self.batch

    def described(self) -> dict[str, Any]:
        """Return what is known of the letter, without the record itself, for JSON."""
        return {
            "id": self.id,
            "pipeline": self.pipeline,
            "stage": self.stage,
            "error_type": self.error_type,
            "error": self.error,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "time": self.timestamp.isoformat() if self.timestamp else None,
            "epoch": self.epoch,
            "batch": self.batch,
        }

    def restored(self) -> DeadLetter:
        """Return the letter of a plan's note, as it is to be replayed."""
        return msgspec.structs.replace(self, stage="", error_type="", error="")

    def planned(self, replay: int, owner: str) -> DeadLetter:
        """Return the note that a replay takes this letter, with the record as it is to be replayed."""
        return self._noted(PLANNED, About(self.epoch, self.batch, replay, owner))

    def noted(self, stage: str, replay: int = 0, owner: str = "") -> DeadLetter:
        """Return the note that something was done with this letter, or with the letter of this plan."""
        about = self.about if self.is_note else About(self.epoch, self.batch)
        note = self._noted(stage, about._replace(replay=replay, owner=owner))
        return msgspec.structs.replace(note, key=None, value=None, headers=[])

    def _noted(self, stage: str, about: About) -> DeadLetter:
        text = msgspec.json.encode(about).decode()
        return msgspec.structs.replace(self, stage=stage, error_type="Note", error=text)


def from_record(record: Record) -> DeadLetter | None:
    """Read a letter from a record of a dead-letter topic; None where it is a record of others."""
    headers = list(record.headers)
    own, origin = _divided(headers)
    if "stage" not in origin:
        return None
    rest = {"key": record.key, "value": record.value}
    if origin["stage"] == IMPORTED.encode() and "topic" not in origin:
        return _imported(record, origin, own)
    try:
        return _letter(origin, **rest, headers=own)
    except ValueError as error:
        return DeadLetter(
            stage=UNREADABLE,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp=record.time,
            error_type="Unreadable",
            error=str(error),
            **rest,
            headers=headers,
        )


def from_row(row: Mapping[str, Any]) -> DeadLetter:
    """Read a letter from a row of a table of dead letters."""
    try:
        headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
        return _checked(msgspec.convert({**row, "headers": headers}, DeadLetter))
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        digest = hashlib.sha256(repr(sorted(row.items())).encode()).digest()
        return DeadLetter(
            stage=UNREADABLE,
            topic=UNREADABLE,
            partition=0,
            offset=int.from_bytes(digest[:4], "big"),  # a row has no place of its own
            error_type="Unreadable",
            error=str(error),
            key=row.get("key"),
            value=row.get("value"),
        )


def as_headers(letter: DeadLetter) -> Headers:
    """Return the headers of a letter's record: its own, then the origin."""
    fields = msgspec.structs.asdict(letter)
    at = letter.timestamp
    fields["timestamp"] = at.astimezone(timezone.utc).strftime(_FORM) if at else ""
    origin = (*_ORIGIN, "part") if letter.part else _ORIGIN
    return [
        *letter.headers,
        *((f"{_PREFIX}{name}", str(fields[name]).encode(errors="replace")) for name in origin),
    ]


_PREFIX = "penstock."
_ORIGIN = tuple(
    name for name in DeadLetter.__struct_fields__ if name not in {"key", "value", "headers", "part"}
)
_NAMES = [f"{_PREFIX}{name}" for name in _ORIGIN]
# Only letters of flows have it, after all others.
_PART = f"{_PREFIX}part"
_PLACE_OF_PART = re.compile(r"[0-9]{1,10}(\.[0-9]{1,10}){0,20}")
_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"
_NUMBER = re.compile(rb"[0-9]{1,19}")
_LONG, _INTEGER = 2**63 - 1, 2**31 - 1


def _divided(headers: Headers) -> tuple[Headers, dict[str, bytes]]:
    """Separate the record's headers from ours: ours were added last, whatever names the others have."""
    has_part = bool(headers) and headers[-1][0] == _PART
    names = [*_NAMES, _PART] if has_part else _NAMES
    first = len(headers) - len(names)
    if first >= 0 and [name for name, _ in headers[first:]] == names:
        ours = set(range(first, len(headers)))
    else:
        ours = set({name: at for at, (name, _) in enumerate(headers) if name in _NAMES}.values())
    own = [header for at, header in enumerate(headers) if at not in ours]
    origin = {headers[at][0].removeprefix(_PREFIX): headers[at][1] or b"" for at in ours}
    return own, origin


def _imported(record: Record, origin: Mapping[str, bytes], own: Headers) -> DeadLetter:
    """Return a letter of an import, whose place is its own; the part that it is of is a header."""
    return DeadLetter(
        pipeline=_text(origin, "pipeline"),
        stage=IMPORTED,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.time,
        error_type=_text(origin, "error_type"),
        error=_text(origin, "error"),
        key=record.key,
        value=record.value,
        headers=own,
    )


def _letter(
    origin: Mapping[str, bytes], key: bytes | None, value: bytes | None, headers: Headers
) -> DeadLetter:
    letter = DeadLetter(
        pipeline=_text(origin, "pipeline"),
        epoch=_number(origin, "epoch", default=b"0"),
        batch=_batch(origin),
        stage=_text(origin, "stage"),
        topic=_text(origin, "topic"),
        partition=_number(origin, "partition"),
        offset=_number(origin, "offset"),
        timestamp=_moment(_text(origin, "timestamp")),
        error_type=_text(origin, "error_type"),
        error=_text(origin, "error"),
        key=key,
        value=value,
        headers=headers,
        part=_text(origin, "part"),
    )
    return _checked(letter)


def _text(origin: Mapping[str, bytes], name: str) -> str:
    return origin.get(name, b"").decode(errors="backslashreplace")


def _number(origin: Mapping[str, bytes], name: str, default: bytes = b"") -> int:
    given = origin.get(name, default)
    if not _NUMBER.fullmatch(given):
        raise ValueError(f"{_PREFIX}{name} is {given[:40]!r}, not a whole number from 0")
    return int(given)


def _batch(origin: Mapping[str, bytes]) -> int:
    """Return the batch; before batch 0 the letters of an earlier process are finished."""
    return CLAIMED if origin.get("batch") == b"%d" % CLAIMED else _number(origin, "batch", b"0")


def _checked(letter: DeadLetter) -> DeadLetter:
    """Refuse what no record can have had: such a letter must not get as far as Spark."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", letter.topic):
        raise ValueError(f"{_PREFIX}topic is {letter.topic[:40]!r}, not the name of a topic")
    for name, least, most in (
        ("partition", 0, _INTEGER),
        ("offset", 0, _LONG),
        ("epoch", 0, _LONG),
        ("batch", CLAIMED, _LONG),
    ):
        if not least <= (number := getattr(letter, name)) <= most:
            raise ValueError(f"{_PREFIX}{name} is {number}, not between {least} and {most}")
    if letter.part and not _PLACE_OF_PART.fullmatch(letter.part):
        raise ValueError(f"{_PART} is {letter.part[:40]!r}, not numbers with dots between them")
    if letter.is_note:
        try:
            _ = letter.about
        except (msgspec.MsgspecError, UnicodeError):
            raise ValueError(f"a note ({letter.stage}) that names no letter") from None
    return letter


def _moment(text: str) -> datetime | None:
    """Return the time; a letter whose time cannot be read is a letter without one."""
    try:
        return datetime.strptime(text, _FORM).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
