"""The queues of a consumer: its own, one for each partition that asks for it, and the main one.

librdkafka has them, its Python binding has not: docs/decisions/008 says how they are built here.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Literal

from confluent_kafka import Message, TopicPartition
from msgspec import Struct

from penstock.errors import ConfigError, PenstockError, TerminalError
from penstock.formats import Format
from penstock.kafka.consuming.buffer import Buffer, partition_of
from penstock.kafka.consuming.decoding import Decoder
from penstock.kafka.consuming.membership import Membership
from penstock.kafka.consuming.poller import Poller, at_least_one, deadline_of
from penstock.kafka.handle import Partition
from penstock.record import Record

# Records that wait here, for each queue, before its partition is paused.
_MOST = 10_000
_SLICE = 0.1
Name = Literal["Fetch", "Rebalance", "OffsetCommit", "Error", "None"]


class Event(Struct, frozen=True):
    """One event. An event of the name "None" is false: nothing came.

    >>> event = Event("OffsetCommit", partitions=[("trades", 0, 7)])
    >>> event.partition, bool(event), event.message_count
    (('trades', 0, 7), True, 0)
    >>> bool(Event("None"))
    False
    """

    name: Name
    messages: list[Record] = []
    error: PenstockError | None = None
    partitions: list[tuple[str, int, int]] = []
    """Topic, partition and offset of each one that the event is about."""
    change: str = ""
    """Of a Rebalance: Assigned, Revoked or Lost."""

    @property
    def message_count(self) -> int:
        """Return the number of records of the event."""
        return len(self.messages)

    @property
    def partition(self) -> tuple[str, int, int] | None:
        """Return the one partition that the event is about; None for none or several."""
        places = self.partitions or [(r.topic, r.partition, r.offset) for r in self.messages]
        return places[0] if len(places) == 1 else None

    def table(self) -> Any:
        """Return all partitions as an Arrow table: topic, partition, offset."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        schema = pa.schema({"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()})
        rows = [dict(zip(schema.names, place, strict=True)) for place in self.partitions]
        return pa.Table.from_pylist(rows, schema=schema)

    def __bool__(self) -> bool:
        return self.name != "None"


NOTHING = Event("None")


class Queue:
    """Events in the order in which they came: take them, count them, forward them to another queue.

    `timeout` is how many seconds a poll waits; it can be set.
    """

    def __init__(self, name: str, router: Router) -> None:
        self.name = name
        self.timeout = 1.0
        self._router = router
        self._waiting: deque[Event] = deque()
        self._forward: Queue | None = None

    def __len__(self) -> int:
        """Return how many events wait, with those that have arrived meanwhile."""
        self._router.pump(0)
        return len(self._end._waiting)

    def __bool__(self) -> bool:
        """Return True, also for an empty queue."""
        return True

    def forward_to(self, other: Queue) -> None:
        """Send everything that waits here, and all that comes, to another queue."""
        if other._end is self:
            raise ConfigError(f"queue {self.name!r} cannot be forwarded to itself ({other.name!r})")
        self._forward = other
        other._end._waiting.extend(self._waiting)
        self._waiting.clear()

    def stop_forwarding(self) -> None:
        """Keep here again what comes from now on."""
        self._forward = None

    def poll(
        self, timeout: float | None = None, format: str | Format | None = None
    ) -> Record | None:
        """Return the next record, or None when none came in time; drop other events."""
        records = self.poll_batch(1, timeout, format)
        return records[0] if records else None

    def poll_batch(
        self, max_records: int, timeout: float | None = None, format: str | Format | None = None
    ) -> list[Record]:
        """Return up to `max_records` records; drop other events."""
        decode = Decoder(format)
        messages = self._gathered(at_least_one(max_records), self._deadline(timeout))
        self._router.delivered(messages)
        return decode(messages)

    def event(self, timeout: float | None = None) -> Event:
        """Return the next event; one that is false when none came in time."""
        deadline = self._deadline(timeout)
        while not self._end._waiting:
            if not self._pumped(deadline):
                return NOTHING
        event = self._end._waiting.popleft()
        self._router.delivered([record.message for record in event.messages])
        return event

    @property
    def _end(self) -> Queue:
        """Return the queue in which events wait: this one, or the end of the forwarding chain."""
        return self if self._forward is None else self._forward._end

    def _is_full(self) -> bool:
        return len(self._end._waiting) >= _MOST

    def _take(self, max_records: int) -> list[Message]:
        waiting = self._end._waiting
        messages: list[Message] = []
        while waiting and len(messages) < max_records:
            messages += [record.message for record in waiting.popleft().messages]
        return messages

    def _gathered(self, max_records: int, deadline: float) -> list[Message]:
        messages = self._take(max_records)
        try:
            while len(messages) < max_records and self._pumped(deadline):
                messages += self._take(max_records - len(messages))
        except BaseException:
            # A wakeup, or an error: what was gathered comes with the next poll.
            self._end._waiting.extendleft(map(_fetched, reversed(messages)))
            raise
        return messages

    def _deadline(self, timeout: float | None) -> float:
        return deadline_of(self.timeout if timeout is None else timeout)

    def _pumped(self, deadline: float) -> bool:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        self._router.pump(min(left, _SLICE))
        return True

    def __repr__(self) -> str:
        target = f" -> {self._end.name}" if self._forward else ""
        return f"<Queue {self.name}{target}: {len(self._end._waiting)} waiting>"


class Queues:
    """The queues of one consumer: `consumer` has its records, `main` its other events."""

    def __init__(self, router: Router) -> None:
        self.consumer = router.consumer
        self.main = router.main
        self._router = router

    def partition(self, topic: str, partition: int) -> Queue:
        """Return the queue of one partition: its records come here from now on, not to the consumer's."""
        return self._router.partition((topic, partition))


class Router:
    """Takes messages and events from librdkafka, and puts them into the queues where they belong."""

    def __init__(self, poller: Poller, buffer: Buffer, membership: Membership) -> None:
        self._poller = poller
        self._buffer = buffer
        self._membership = membership
        self._partitions: dict[Partition, Queue] = {}
        self.consumer = Queue("consumer", self)
        self.main = Queue("main", self)
        # As librdkafka has it: errors and other events come between the records.
        self.main.forward_to(self.consumer)
        self.queues = Queues(self)

    def partition(self, where: Partition) -> Queue:
        """Return the queue of one partition."""
        if where not in self._partitions:
            self._partitions[where] = Queue(f"{where[0]}[{where[1]}]", self)
        return self._partitions[where]

    def take(self, max_records: int, wait: float) -> list[Message]:
        """Return the messages of the consumer's own queue: what its polls get once there are queues."""
        messages = self.consumer._take(max_records)
        if not messages:
            self.pump(wait)
            messages = self.consumer._take(max_records)
        return messages

    def pump(self, wait: float) -> None:
        """Take from librdkafka what it has, and put it where it belongs."""
        self._hold_back()
        self._buffer.store_delivered()
        for message in self._poller.take(_MOST if wait == 0 else 1, wait):
            self._put(self._partitions.get(partition_of(message), self.consumer), _fetched(message))

    def delivered(self, messages: list[Message]) -> None:
        """Note what a caller got from a queue."""
        self._buffer.note_delivered(messages)

    def rebalanced(self, change: str, partitions: list[TopicPartition]) -> None:
        """Add the event of partitions that came or went."""
        self._put(self.consumer, Event("Rebalance", change=change, partitions=_rows(partitions)))

    def committed(self, error: PenstockError | None, partitions: list[TopicPartition]) -> None:
        """Add the event of a commit that was answered."""
        self._put(self.main, Event("OffsetCommit", error=error, partitions=_rows(partitions)))

    def failed(self, name: str, message: str) -> None:
        """Add the event of an error in the background."""
        self._put(self.main, Event("Error", error=TerminalError(f"{message} ({name})")))

    def starts(self) -> dict[Partition, int]:
        """Return the first offset that waits in a queue, for each partition that has one."""
        events = [event for queue in self._all() for event in queue._waiting]
        records = [record for event in events for record in event.messages]
        # A partition's records may wait in two queues, its own and the consumer's: the first one counts.
        records.sort(key=lambda record: record.offset, reverse=True)
        return {partition_of(record.message): record.offset for record in records}

    def drop(self, gone: set[Partition]) -> None:
        """Drop the records of partitions that another member reads now, or this one reads again."""
        for queue in self._all():
            queue._waiting = deque(
                event
                for event in queue._waiting
                if not {partition_of(record.message) for record in event.messages} & gone
            )

    def _hold_back(self) -> None:
        """Hold the partitions whose queue is full, and release those whose queue has room again."""
        held = self._membership.held
        if not held and not any(queue._is_full() for queue in self._all()):
            return
        mine = self._membership.assigned_at()
        full = {where for where in mine if self._partitions.get(where, self.consumer)._is_full()}
        if stop := full - held:
            self._membership.hold(stop)
        # Also those that went away: where they come back, librdkafka would not fetch from them.
        if go := held - full:
            self._membership.release(go)

    def _all(self) -> tuple[Queue, ...]:
        return self.main, self.consumer, *self._partitions.values()

    @staticmethod
    def _put(queue: Queue, event: Event) -> None:
        queue._end._waiting.append(event)


def _fetched(message: Message) -> Event:
    return Event("Fetch", messages=[Record(message)])


def _rows(partitions: list[TopicPartition]) -> list[tuple[str, int, int]]:
    return [(place.topic, place.partition, place.offset) for place in partitions]
