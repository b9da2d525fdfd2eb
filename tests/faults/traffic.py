"""Records that flow while a test breaks things: a writer, a reader, and a ledger of what they saw.

Both kinds of client do the same, so that a test can run them side by side through one trouble.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from penstock import AsyncConsumer, AsyncProducer, Connection, Consumer, Producer
from penstock.errors import TransientError
from penstock.record import Record
from penstock.testing import eventually

KEYS = 7
# A handful of records, then a breath: some hundred records a second.
BURST, BREATH = 10, 0.02
# A reader commits after each batch, which takes its time on a slow machine: it must be able to catch up.
MOST = 2000
# So far a writer may be ahead of its reader; on a slow machine it waits then.
AHEAD = 3000
SURE = {"acks": "all", "enable.idempotence": True}
# How long the last records may take to be delivered and read, when all brokers are there again: on a slow
# machine a reader that missed its session (45 s) must join once more before it can go on.
PATIENCE = 180.0
ErrorEvent = tuple[str, str, str]


@dataclass
class Ledger:
    """What one writer sent and one group of readers handled."""

    acknowledged: list[Record] = field(default_factory=list)
    delivered: int = 0
    handled: list[Record] = field(default_factory=list)
    readers: int = 0
    expected: int | None = None
    broken: list[BaseException] = field(default_factory=list)
    # Commits that failed in a way that passes: a reader polls on then, as the error says.
    uncommitted: list[TransientError] = field(default_factory=list)
    writer_errors: list[ErrorEvent] = field(default_factory=list)
    reader_errors: list[ErrorEvent] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether everything that was acknowledged has been handled."""
        return self.expected is not None and len(set(self.handled)) >= self.expected


class Traffic:
    """A writer and a reader of one topic, until the block ends and all has been read.

    `change_reader` lets the reader leave and another one take its place in the group.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        self.connection = connection
        self.topic = topic
        self.ledger = Ledger()
        self._stop, self._change, self._give_up = Event(), Event(), Event()
        self._threads = [
            Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self.write, self.read)
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, exc_type: object, *_exc: object) -> None:
        self._stop.set()
        if exc_type is not None:
            self._give_up.set()
        deadline = time.monotonic() + PATIENCE
        for thread in self._threads:
            thread.join(max(0, deadline - time.monotonic()))
            if exc_type is None and thread.is_alive():
                self.ledger.broken.append(self._stuck(thread))
        self._give_up.set()

    def _stuck(self, thread: Thread) -> TimeoutError:
        """Where a thread is that did not end, for the test to show."""
        frame = sys._current_frames().get(thread.ident or 0)
        where = "".join(traceback.format_stack(frame)) if frame else "(it has just ended)"
        ledger = self.ledger
        return TimeoutError(
            f"{len(ledger.handled)} of {ledger.expected} records were handled after {PATIENCE:.0f} s; "
            f"commits that failed: {ledger.uncommitted}; the thread is at:\n{where}"
        )

    def change_reader(self) -> None:
        self._change.set()

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except BaseException as problem:  # whatever it is, the test must hear of it
            self.ledger.broken.append(problem)
            raise

    def write(self) -> None:
        """Write numbers, each with one of a few keys, and keep every answer."""
        raise NotImplementedError

    def read(self) -> None:
        """Read, handle and commit, until all is there."""
        raise NotImplementedError

    @property
    def _too_far(self) -> bool:
        return self.ledger.delivered - len(self.ledger.handled) > AHEAD

    @property
    def _reading(self) -> bool:
        return not self._change.is_set() and self._more

    @property
    def _more(self) -> bool:
        return not self._give_up.is_set() and not self.ledger.complete


class SyncTraffic(Traffic):
    """With `Producer` and `Consumer`."""

    def write(self) -> None:
        sent = []
        with Producer(self.connection, on_error=self._writer_error, **SURE) as producer:
            while not self._stop.wait(BREATH):
                if self._too_far:
                    continue
                for n in range(len(sent), len(sent) + BURST):
                    sent.append(producer.produce(self.topic, f"key-{n % KEYS}", str(n)))
                self.ledger.delivered = producer.delivered
        self.ledger.acknowledged = [delivery.result() for delivery in sent]
        self.ledger.expected = len(sent)

    def read(self) -> None:
        while self._more:
            self._change.clear()
            self.ledger.readers += 1
            with Consumer(self.connection, **self._group) as consumer:
                consumer.subscribe(self.topic)
                while self._reading:
                    if records := consumer.poll_batch(MOST, 0.2):
                        self.ledger.handled += records
                        try:
                            consumer.commit()
                        except TransientError as error:
                            self.ledger.uncommitted.append(error)

    @property
    def _group(self) -> dict[str, Any]:
        start = {"group": self.topic, "auto_offset_reset": "earliest"}
        return start | {"on_error": lambda *event: self.ledger.reader_errors.append(event)}

    def _writer_error(self, *event: str) -> None:
        self.ledger.writer_errors.append((event[0], event[1], event[2]))


class AsyncTraffic(SyncTraffic):
    """With `AsyncProducer` and `AsyncConsumer`."""

    def write(self) -> None:
        asyncio.run(self._write())

    def read(self) -> None:
        asyncio.run(self._read())

    async def _write(self) -> None:
        sent = []
        async with AsyncProducer(self.connection, on_error=self._writer_error, **SURE) as producer:
            while not self._stop.is_set():
                if self._too_far:
                    await asyncio.sleep(BREATH)
                    continue
                for n in range(len(sent), len(sent) + BURST):
                    sent.append(await producer.produce(self.topic, f"key-{n % KEYS}", str(n)))
                self.ledger.delivered = producer.delivered
                await asyncio.sleep(BREATH)
        self.ledger.acknowledged = [await delivery for delivery in sent]
        self.ledger.expected = len(sent)

    async def _read(self) -> None:
        while self._more:
            self._change.clear()
            self.ledger.readers += 1
            async with AsyncConsumer(self.connection, **self._group) as consumer:
                consumer.subscribe(self.topic)
                while self._reading:
                    if records := await consumer.poll_batch(MOST, 0.2):
                        self.ledger.handled += records
                        try:
                            await consumer.commit()
                        except TransientError as error:
                            self.ledger.uncommitted.append(error)


def wait_for_progress(flows: Iterable[Traffic], count: int) -> None:
    """Wait until each of them has delivered and handled that many more, or broke."""
    for ledger in (flow.ledger for flow in flows):
        delivered, handled = ledger.delivered + count, len(ledger.handled) + count
        eventually(
            lambda w=ledger, d=delivered, h=handled: (
                w.broken or (w.delivered >= d and len(w.handled) >= h)
            ),
            timeout=90,
        )


KINDS: dict[str, type[Traffic]] = {"sync": SyncTraffic, "asyncio": AsyncTraffic}


def by_partition(records: Iterable[Record]) -> dict[int, list[int]]:
    """The offsets of each partition, in the order of the records."""
    found: dict[int, list[int]] = defaultdict(list)
    for record in records:
        found[record.partition].append(record.offset)
    return dict(found)


def by_key(records: Iterable[Record]) -> dict[bytes, list[int]]:
    """The numbers of each key, in the order of the records."""
    found: dict[bytes, list[int]] = defaultdict(list)
    for record in records:
        found[record.key].append(int(record.value))
    return dict(found)


def by_place(records: Iterable[Record]) -> dict[tuple[int, int], bytes]:
    """The values by partition and offset."""
    return {(record.partition, record.offset): record.value for record in records}


def jumps(records: Iterable[Record]) -> list[Record]:
    """The records before which a reader left others out."""
    next_one: dict[int, int] = defaultdict(int)
    found = []
    for record in records:
        if record.offset > next_one[record.partition]:
            found.append(record)
        next_one[record.partition] = max(next_one[record.partition], record.offset + 1)
    return found
