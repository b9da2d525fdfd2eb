"""The queues of a consumer: its own, one for each partition that asks for it, and the main one.

librdkafka has them, its Python binding has not: docs/decisions/008 says how they are built here.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from confluent_kafka import Message, TopicPartition

from penstock.errors import ConfigError, PenstockError, TerminalError
from penstock.formats import Format, find_format
from penstock.kafka.consuming.ahead import place_of
from penstock.kafka.consuming.bounds import at_least_one, deadline_of
from penstock.kafka.consuming.decoding import decode_all
from penstock.kafka.consuming.events import NOTHING, Event
from penstock.kafka.handle import Partition
from penstock.record import Record

if TYPE_CHECKING:
    from penstock.kafka.consuming.consumer import Consumer

# Records that wait here, for each queue, before its partition is told to wait.
_MOST = 10_000
_SLICE = 0.1


class Queue:
    """Events in the order in which they came: take them, count them, send them to another queue."""

    def __init__(self, name: str, queues: Queues) -> None:
        self.name = name
        self.timeout_ms = 1000
        self._queues = queues
        self._waiting: deque[Event] = deque()
        self._forward: Queue | None = None

    def __len__(self) -> int:
        """How many events wait, with what has arrived meanwhile."""
        self._queues.pump(0)
        return len(self.end._waiting)

    def __bool__(self) -> bool:
        """A queue is a queue, also when it is empty."""
        return True

    def forward_to(self, other: Queue) -> None:
        """Send everything that waits here, and all that comes, to another queue."""
        if other.end is self:
            raise ConfigError(f"queue {self.name!r} cannot be forwarded to itself ({other.name!r})")
        self._forward = other
        other.end._waiting.extend(self._waiting)
        self._waiting.clear()

    def stop_forwarding(self) -> None:
        """Keep here again what comes from now on."""
        self._forward = None

    @property
    def end(self) -> Queue:
        """The queue in which things really wait: this one, or where it is forwarded to."""
        return self if self._forward is None else self._forward.end

    def poll(
        self,
        timeout_ms: int | None = None,
        format: str | Format | None = None,
    ) -> Record | None:
        """The next record, or None when none came in time; other events are dropped."""
        records = self.poll_batch(1, timeout_ms, format)
        return records[0] if records else None

    def poll_batch(
        self,
        most: int,
        timeout_ms: int | None = None,
        format: str | Format | None = None,
    ) -> list[Record]:
        """Up to `most` records; other events are dropped."""
        wanted = None if format is None else find_format(format)
        messages = self._gathered(at_least_one(most), self._deadline(timeout_ms))
        return decode_all(self._queues.handed_out(messages), wanted, None)

    def _gathered(self, most: int, deadline: float) -> list[Message]:
        messages = self.take(most)
        try:
            while len(messages) < most and self._pumped(deadline):
                messages += self.take(most - len(messages))
        except BaseException:
            # A wakeup, or an error: what was gathered comes with the next poll.
            self.end._waiting.extendleft(map(_fetched, reversed(messages)))
            raise
        return messages

    def event(self, timeout_ms: int | None = None) -> Event:
        """The next event; one that is false when none came in time."""
        deadline = self._deadline(timeout_ms)
        while not self.end._waiting:
            if not self._pumped(deadline):
                return NOTHING
        event = self.end._waiting.popleft()
        self._queues.handed_out([record.message for record in event.messages])
        return event

    @property
    def is_full(self) -> bool:
        """Whether as much waits as may."""
        return len(self.end._waiting) >= _MOST

    def put(self, event: Event) -> None:
        """Take an event in."""
        self.end._waiting.append(event)

    def take(self, most: int) -> list[Message]:
        """The messages that wait, up to a number."""
        waiting = self.end._waiting
        found: list[Message] = []
        while waiting and len(found) < most:
            found += [record.message for record in waiting.popleft().messages]
        return found

    def records(self) -> list[Record]:
        """The records that wait here."""
        return [record for event in self._waiting for record in event.messages]

    def drop(self, partitions: set[Partition]) -> None:
        """Forget the records of these partitions."""
        kept = [
            e for e in self._waiting if not {place_of(r.message) for r in e.messages} & partitions
        ]
        self._waiting = deque(kept)

    def _deadline(self, timeout_ms: int | None) -> float:
        return deadline_of(self.timeout_ms if timeout_ms is None else timeout_ms)

    def _pumped(self, deadline: float) -> bool:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        self._queues.pump(min(left, _SLICE))
        return True

    def __repr__(self) -> str:
        target = f" -> {self.end.name}" if self._forward else ""
        return f"<Queue {self.name}{target}: {len(self.end._waiting)} waiting>"


class Queues:
    """All queues of one consumer, and the one who fills them."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._held: set[Partition] = set()
        self._partitions: dict[Partition, Queue] = {}
        self.consumer = Queue("consumer", self)
        self.main = Queue("main", self)
        # As librdkafka has it: errors and other events come between the records.
        self.main.forward_to(self.consumer)

    def partition(self, topic: str, partition: int) -> Queue:
        """The queue of one partition: from now on its records come here, and not to the consumer's."""
        where = (topic, partition)
        if where not in self._partitions:
            self._partitions[where] = Queue(f"{topic}[{partition}]", self)
        return self._partitions[where]

    def take(self, most: int, wait: float) -> list[Message]:
        """What a poll of the consumer itself gets once there are queues: those of its own queue."""
        found = self.consumer.take(most)
        if not found:
            self.pump(wait)
            found = self.consumer.take(most)
        return found

    def pump(self, wait: float) -> None:
        """Take from librdkafka what it has, and put it where it belongs."""
        self._hold_back()
        self._consumer.store_handed_out()
        for message in self._consumer.take(_MOST if wait == 0 else 1, wait):
            where = (str(message.topic()), int(message.partition() or 0))
            queue = self._partitions.get(where, self.consumer)
            queue.put(_fetched(message))

    def handed_out(self, messages: list[Message]) -> list[Message]:
        """Take note of what a caller got from a queue."""
        if self._consumer.keeps_place:
            self._consumer.handed.note(messages)
        return messages

    def rebalanced(self, change: str, partitions: list[TopicPartition]) -> None:
        """Partitions came or went."""
        if change != "Assigned":
            self._held -= {(place.topic, place.partition) for place in partitions}
            self.forget({(place.topic, place.partition) for place in partitions})
        self.consumer.put(Event("Rebalance", change=change, partitions=_rows(partitions)))

    def committed(self, error: PenstockError | None, partitions: list[TopicPartition]) -> None:
        """A commit was answered."""
        self.main.put(Event("OffsetCommit", error=error, partitions=_rows(partitions)))

    def failed(self, name: str, message: str) -> None:
        """Something went wrong in the background."""
        self.main.put(Event("Error", error=TerminalError(f"{message} ({name})")))

    def starts(self) -> dict[Partition, int]:
        """The first offset that waits in a queue, for each partition that has one."""
        records = [record for queue in self._all() for record in queue.records()]
        # A partition's records may wait in two queues, its own and the consumer's: the first one counts.
        return {place_of(r.message): r.offset for r in sorted(records, key=_offset, reverse=True)}

    def forget(self, gone: set[Partition]) -> None:
        """Drop what waits of partitions that another member reads now, or this one once more."""
        for queue in self._all():
            queue.drop(gone)

    def _hold_back(self) -> None:
        """Pause the partitions whose queue is full, and resume those that have been read off."""
        if not self._held and not any(queue.is_full for queue in self._all()):
            return
        mine = self._consumer.assignment
        full = {where for where in mine if self._partitions.get(where, self.consumer).is_full}
        if stop := full - self._held:
            self._consumer.hold(stop)
        if go := (self._held - full) & mine:
            self._consumer.resume(go)
        self._held = full

    def _all(self) -> tuple[Queue, ...]:
        return self.main, self.consumer, *self._partitions.values()


def _fetched(message: Message) -> Event:
    return Event("Fetch", messages=[Record(message)])


def _offset(record: Record) -> int:
    return record.offset


def _rows(partitions: list[TopicPartition]) -> list[tuple[str, int, int]]:
    return [(place.topic, place.partition, place.offset) for place in partitions]
