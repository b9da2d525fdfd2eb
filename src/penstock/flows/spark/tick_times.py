"""When a timer fires: the due times after its last tick, also across changes to and from summer time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from zoneinfo import ZoneInfo

from penstock.flows.definition.cron import Cron

# How many minutes are looked at one by one: an hour that a clock repeats, and more.
_MINUTES = 180


@dataclass(frozen=True)
class TickTimes:
    """The times of an interval or of a cron expression, in milliseconds since 1970.

    >>> list(TickTimes(interval=0.5).between(0, 1600))
    [500, 1000, 1500]
    """

    interval: float | None = None
    cron: str | None = None
    zone: str = "UTC"

    @property
    def schedule(self) -> str | None:
        """Return the text by which a changed cron expression is recognized; None for an interval."""
        return f"{self.cron} {self.zone}" if self.cron else None

    def next(self, last: int) -> int | None:
        """Return the first due time after a time, None where there is none."""
        if self.interval is not None:
            return last + max(1, round(self.interval * 1000))
        after = self._after(datetime.fromtimestamp(last / 1000, timezone.utc))
        return None if after is None else int(after.timestamp() * 1000)

    def between(self, last: int, now: int) -> Iterator[int]:
        """Yield the due times after one and up to another."""
        due = self.next(last)
        while due is not None and due <= now:
            yield due
            due = self.next(due)

    def latest(self, last: int, now: int) -> tuple[int, int] | None:
        """Return the last due time up to now, and how many come before it; None where there is none.

        >>> TickTimes(interval=0.5).latest(0, 1600)
        (1500, 2)
        """
        if self.interval is not None:
            step = self.next(0) or 1
            count = (now - last) // step
            return (last + count * step, count - 1) if count > 0 else None
        found = None
        for before, due in enumerate(self.between(last, now)):
            found = due, before
        return found

    @cached_property
    def _times(self) -> Cron:
        return Cron.read(self.cron or "* * * * *")

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def _after(self, last: datetime) -> datetime | None:
        """Return the next time by the clock of the zone.

        An hour that the clock repeats has the times of `*` twice and others once; one that it skips has
        none of the times of `*`, and others after it.
        """
        if self._times.is_hourly and (found := self._minute_after(last)):
            return found
        wall = self._times.after(last.astimezone(self._zone).replace(tzinfo=None))
        if wall is None:
            return None
        found = wall.replace(tzinfo=self._zone).astimezone(timezone.utc)
        if found > last:
            return found
        return wall.replace(tzinfo=self._zone, fold=1).astimezone(timezone.utc)

    def _minute_after(self, last: datetime) -> datetime | None:
        first = last.replace(second=0, microsecond=0)
        for minutes in range(1, _MINUTES + 1):
            at = first + timedelta(minutes=minutes)
            if self._times.fits(at.astimezone(self._zone).replace(tzinfo=None)):
                return at
        return None
