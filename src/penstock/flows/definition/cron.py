"""Times of a cron expression: five fields, names of months and days, lists, ranges and steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

_MONTHS = [
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, tuple(_MONTHS)),
    ("weekday", 0, 7, tuple(_DAYS)),
)
_PART = re.compile(r"(\*|[A-Za-z0-9]+(?:-[A-Za-z0-9]+)?)(?:/([0-9]{1,4}))?")
_FARTHEST = 366 * 8


@dataclass(frozen=True)
class Cron:
    """When a timer fires.

    >>> Cron.read("*/15 8-17 * * mon-fri").after(datetime(2024, 5, 3, 17, 50))
    datetime.datetime(2024, 5, 6, 8, 0)
    """

    text: str
    fields: tuple[frozenset[int], ...]

    @classmethod
    def read(cls, text: str) -> Cron:
        """Read an expression; ValueError says which field is wrong."""
        given = text.split()
        if len(given) != len(_FIELDS):
            raise ValueError(
                f"given {text!r:.60}, which has {len(given)} fields; a cron has five: minute hour day "
                "month weekday"
            )
        found = [_field(each, *field) for each, field in zip(given, _FIELDS, strict=True)]
        found[4] = frozenset(day % 7 for day in found[4])
        made = cls(text, tuple(found))
        if made.after(datetime(2024, 1, 1)) is None:
            raise ValueError(f"given {text!r:.60}, which no day fits")
        return made

    def after(self, time: datetime) -> datetime | None:
        """Return the next time after this one, None where there is none within eight years."""
        minute, hour, _, _, _ = self.fields
        at = (time + timedelta(minutes=1)).replace(second=0, microsecond=0)
        for _ in range(_FARTHEST):
            if self._is_day(at):
                for each in sorted(hour):
                    for part in sorted(minute):
                        if (each, part) >= (at.hour, at.minute):
                            return at.replace(hour=each, minute=part)
            at = (at + timedelta(days=1)).replace(hour=0, minute=0)
        return None

    @property
    def is_hourly(self) -> bool:
        """Return whether it fires in every hour of its days."""
        return self.text.split()[1].startswith("*")

    def fits(self, at: datetime) -> bool:
        """Return whether a minute is one of its times."""
        return at.minute in self.fields[0] and at.hour in self.fields[1] and self._is_day(at)

    def _is_day(self, at: datetime) -> bool:
        _, _, day, month, weekday = self.fields
        if at.month not in month:
            return False
        in_month, in_week = at.day in day, at.isoweekday() % 7 in weekday
        given = self.text.split()
        # As in cron: where both are restricted, one of them is enough.
        if given[2].startswith("*") or given[4].startswith("*"):
            return in_month and in_week
        return in_month or in_week


def _field(text: str, name: str, least: int, most: int, names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(
                f"the {name} {part!r:.40} is not *, a number, a range as 1-5 or a step as */5"
            )
        step = int(match[2] or 1)
        if step == 0:
            raise ValueError(f"the {name} {part!r:.40} has a step of 0; give at least 1")
        first, _, last = match[1].partition("-")
        low = least if first == "*" else _number(first, name, least, most, names)
        high = most if first == "*" or (match[2] and not last) else low
        high = _number(last, name, least, most, names) if last else high
        if low > high:
            raise ValueError(f"the {name} {part!r:.40} ends before it begins")
        found |= set(range(low, high + 1, step))
    return frozenset(found)


def _number(text: str, name: str, least: int, most: int, names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + least
    if not text.isdigit() or not least <= int(text[:9]) <= most:
        allowed = f" or {names[0]} to {names[-1]}" if names else ""
        raise ValueError(
            f"the {name} {text!r:.40} is not allowed; allowed: {least} to {most}{allowed}"
        )
    return int(text)
