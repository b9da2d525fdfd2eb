"""The trigger `timer` as an import. Its position is the last tick: each due time has one message."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from typing import Literal, NamedTuple

import pyarrow as pa
from pydantic import Field

from penstock.errors import ConfigError, TransientError
from penstock.flows.expressions import Expression, ExpressionError
from penstock.flows.expressions.value_text import bytes_of, time_text
from penstock.flows.message import Message
from penstock.flows.spark.tick_times import TickTimes
from penstock.pipeline.importing import (
    BadRecord,
    Import,
    Part,
    Place,
    Portion,
    Position,
    Reader,
    System,
    key_of,
)

_HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
MISSED = "timer.missed"
# A clock may go back by this much, in milliseconds, before a timer that waits for it says so.
_AHEAD = 60_000


class TimerImport(Import):
    """A record for each tick: its timestamp is the due time, a header how many were missed before."""

    name = "timer"

    times: TickTimes = Field(description="When it fires.")
    payload: Expression = Field(description="The value of each record.")
    missed: Literal["one", "all"] = Field(
        default="one", description="What an outage leaves: one tick for those missed, or all."
    )

    def system(self) -> System:
        """Return the clock."""
        return Clock(self)


class Clock(System):
    """This machine's clock: it has something to read when a tick is due."""

    def __init__(self, options: TimerImport) -> None:
        self._options = options
        # The last tick and the next one: of some expressions it is years away, and takes a while to find.
        self._next: tuple[int, int | None] | None = None

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the timer where a tick is due, or where none was noted yet."""
        part = TimerPart(self._options)
        last = part.last(positions.get(key_of(part.place)))
        if last is None:
            return [part]
        now = _now()
        if last > now + _AHEAD:
            raise TransientError(
                f"the last tick is {(last - now) / 1000:.0f} s in the future: the clock was put back, "
                "or the position was set by mistake; the timer waits until then, or give it another one "
                f"with: penstock offsets set NAME '{key_of(part.place)}' '{{\"time\": {now}}}'",
                retry_after=5.0,
            )
        if self._next is None or self._next[0] != last:
            self._next = last, self._options.times.next(last)
        due = self._next[1]
        return [part] if due is not None and due <= now else []


@dataclass(frozen=True)
class TimerPart(Part):
    """The ticks of a timer."""

    options: TimerImport

    @property
    def place(self) -> Place:
        """Return the one place that a timer has."""
        return {"timer": "ticks"}

    def last(self, position: Position | None) -> int | None:
        """Return the last tick; None at the first start, and where the cron expression is another one."""
        schedule = self.options.times.schedule
        if position is None or (schedule and position.get("schedule", schedule) != schedule):
            return None
        at = position.get("time")
        if not isinstance(at, int):
            raise ConfigError(
                f"the position {position} is not one of a timer; allowed: "
                '{"time": N}, the last tick in milliseconds since 1970'
            )
        return at

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Read on after the last tick."""
        yield TickReader(self.options, self.last(position))


class Tick(NamedTuple):
    """A due time, and how many before it have no message of their own."""

    time: int
    missed: int = 0


class TickReader(Reader):
    """The ticks that are due."""

    def __init__(self, options: TimerImport, last: int | None) -> None:
        self._options = options
        self._last = last

    def take(self, most: int) -> Iterator[Portion]:
        """Yield the ticks that are due by now; a cron that starts for the first time notes the time."""
        now = _now()
        ticks = self._due(now, most)
        if ticks or self._last is None:
            self._last = ticks[-1].time if ticks else now
            yield self._portion(ticks, self._last)

    def _due(self, now: int, most: int) -> list[Tick]:
        times = self._options.times
        if self._last is None:
            return [Tick(now)] if times.interval is not None else []
        if self._options.missed == "all":
            return [Tick(due) for due in islice(times.between(self._last, now), most)]
        latest = times.latest(self._last, now)
        return [Tick(*latest)] if latest else []

    def _portion(self, ticks: list[Tick], last: int) -> Portion:
        written: list[tuple[Tick, bytes | None]] = []
        bad: list[BadRecord] = []
        for tick in ticks:
            try:
                value = self._options.payload.value(Message(None, attributes_of(*tick)))
                written.append((tick, bytes_of(value)))
            except ExpressionError as error:
                bad.append(BadRecord(None, f"payload of the timer: {error}", "ExpressionError"))
        records = pa.record_batch(
            {
                "value": pa.array([value for _, value in written], pa.binary()),
                "timestamp": pa.array([tick.time for tick, _ in written], pa.int64()),
                "headers": pa.array(
                    [[{"key": MISSED, "value": b"%d" % tick.missed}] for tick, _ in written],
                    _HEADERS,
                ),
            }
        )
        schedule = self._options.times.schedule
        position = {"time": last, **({"schedule": schedule} if schedule else {})}
        return Portion(records, position, tuple(bad))


def attributes_of(timestamp: int, missed: int) -> dict[str, object]:
    """Return the attributes of a tick.

    >>> attributes_of(1_714_564_800_500, 2)["time"]
    '2024-05-01T12:00:00.500000Z'
    """
    at = datetime.fromtimestamp(timestamp / 1000, timezone.utc)
    return {"time": time_text(at), "timestamp": timestamp, "missed": missed}


def _now() -> int:
    return int(time.time() * 1000)
