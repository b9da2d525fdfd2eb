"""A bounded look into a topic: some messages from one end of a range, and where the next page goes on.

The range of each partition is read in windows of offsets, from its newer or its older end. Messages of a
window are merged by time, and in a partition they stay in the order of their offsets. No group is
joined, and nothing is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from penstock.config import Connection
from penstock.errors import TransientError
from penstock.kafka import Consumer
from penstock.kafka.consuming.loops import read_span
from penstock.kafka.offsets import NO_GROUP
from penstock.record import Record

_MOST_WINDOW = 20_000
# Bytes of wanted messages that are kept until they are merged.
_KEPT = 32 * 1024 * 1024
_SCANNED = 512 * 1024 * 1024
# Seconds that a window may take beyond the time of the page.
_GRACE = 10.0
_CLIENT = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "queued.min.messages": 1000,
    "queued.max.messages.kbytes": 16_384,
}


@dataclass(frozen=True)
class Span:
    """Offsets of a partition: from `start`, without `stop`."""

    start: int
    stop: int

    @property
    def is_empty(self) -> bool:
        """Return whether there are no offsets in it."""
        return self.start >= self.stop

    def window(self, width: int, newest: bool) -> Span:
        """Return the part at the newer or the older end.

        >>> Span(0, 10).window(3, newest=True), Span(0, 10).window(3, newest=False)
        (Span(start=7, stop=10), Span(start=0, stop=3))
        """
        if newest:
            return Span(max(self.start, self.stop - width), self.stop)
        return Span(self.start, min(self.stop, self.start + width))

    def without(self, window: Span, newest: bool) -> Span:
        """Return what is left after a window was read."""
        return Span(self.start, window.start) if newest else Span(window.stop, self.stop)

    def up_to(self, offset: int, newest: bool) -> Span:
        """Return what is left where the message at an offset is the next one."""
        return Span(self.start, offset + 1) if newest else Span(offset, self.stop)

    def including(self, offset: int) -> Span:
        """Return the span with a message next to it, which was read and did not fit into the page."""
        return Span(min(self.start, offset), max(self.stop, offset + 1))


Spans = dict[int, Span]


@dataclass
class Browsed:
    """Messages, what is left of the range, and what it took."""

    records: list[Record] = field(default_factory=list)
    rest: Spans = field(default_factory=dict)
    scanned: int = 0
    scanned_bytes: int = 0

    @property
    def is_complete(self) -> bool:
        """Return whether the whole range was read."""
        return all(span.is_empty for span in self.rest.values())


@dataclass(frozen=True)
class Browsing:
    """What a page is limited by: messages, and seconds after which no further window is read."""

    topic: str
    limit: int
    newest: bool
    seconds: float
    isolation: str = "read_committed"

    def read(
        self, connection: Connection, spans: Mapping[int, Span], wants: Callable[[Record], bool]
    ) -> Browsed:
        """Return the first wanted messages of the spans."""
        page = Browsed(rest=dict(spans))
        if page.is_complete:
            return page
        settings: dict[str, Any] = {**_CLIENT, "isolation.level": self.isolation}
        with Consumer(connection, NO_GROUP, **settings) as consumer:
            self._fill(consumer, page, wants)
        return page

    def _fill(self, consumer: Consumer, page: Browsed, wants: Callable[[Record], bool]) -> None:
        deadline = time.monotonic() + self.seconds
        width = self.limit
        while len(page.records) < self.limit and not page.is_complete:
            open_spans = {p: span for p, span in page.rest.items() if not span.is_empty}
            widest = max(1, min(width, _MOST_WINDOW // len(open_spans)))
            windows = {p: span.window(widest, self.newest) for p, span in open_spans.items()}
            read = _Round(self.topic, wants, deadline + _GRACE, may_give_up=widest > 1)
            found = read.run(consumer, windows)
            page.scanned += read.scanned
            page.scanned_bytes += read.scanned_bytes
            if found is None:  # too large to be kept: smaller windows
                width = max(1, widest // 8)
                continue
            self._merge(page, windows, found)
            width = min(width * 4, _MOST_WINDOW)
            if time.monotonic() > deadline or page.scanned_bytes > _SCANNED:
                return

    def _merge(
        self, page: Browsed, windows: Mapping[int, Span], found: dict[int, list[Record]]
    ) -> None:
        """Take messages of the windows by time until the page is full."""
        sign = -1 if self.newest else 1
        waiting = {
            p: sorted(each, key=lambda r: r.offset, reverse=not self.newest)
            for p, each in found.items()
        }

        def entry(partition: int) -> tuple[int, int]:
            return sign * (waiting[partition][-1].timestamp or 0), partition

        heap = [entry(partition) for partition, each in waiting.items() if each]
        heapify(heap)
        while heap and len(page.records) < self.limit:
            _, partition = heappop(heap)
            page.records.append(waiting[partition].pop())
            if waiting[partition]:
                heappush(heap, entry(partition))
        for partition, window in windows.items():
            left = waiting.get(partition)
            rest = page.rest[partition]
            page.rest[partition] = (
                rest.up_to(left[-1].offset, self.newest)
                if left
                else rest.without(window, self.newest)
            )


@dataclass
class _Round:
    """One read of windows."""

    topic: str
    wants: Callable[[Record], bool]
    deadline: float
    may_give_up: bool
    scanned: int = 0
    scanned_bytes: int = 0
    _kept: int = 0

    def run(
        self, consumer: Consumer, windows: Mapping[int, Span]
    ) -> dict[int, list[Record]] | None:
        """Return the wanted messages by partition; None where they are too large to be kept."""
        found: dict[int, list[Record]] = {}
        start = {(self.topic, p): window.start for p, window in windows.items()}
        stop = {(self.topic, p): window.stop for p, window in windows.items()}
        for records in read_span(consumer, start, stop):
            for record in records:
                self._take(record, found)
            if self._is_too_large:
                break
            self._check_time()
        # A partition that is paused stays so in the next assignment.
        consumer.resume(start)
        consumer.unassign()
        return None if self._is_too_large else found

    @property
    def _is_too_large(self) -> bool:
        return self._kept > _KEPT and self.may_give_up

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise TransientError(
                f"topic {self.topic!r} could not be read in time: its brokers are slow or away; "
                "try again later, or give a smaller limit"
            )

    def _take(self, record: Record, found: dict[int, list[Record]]) -> None:
        size = len(record.value or b"") + len(record.key or b"")
        self.scanned += 1
        self.scanned_bytes += size
        if self.wants(record):
            self._kept += size
            found.setdefault(record.partition, []).append(record)
