"""All records of a topic, read once, and records appended to it: a topic as a small store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.config import Connection
from penstock.kafka.admin.admin import Admin
from penstock.kafka.consuming.consumer import Consumer
from penstock.kafka.consuming.loops import read_span
from penstock.kafka.handle import Partition
from penstock.kafka.offsets import NO_GROUP
from penstock.kafka.producing.producer import Producer
from penstock.record import Record

Whole = tuple["bytes | None", "bytes | None", list[tuple[str, "bytes | None"]]]
"""Key, value and headers of a record."""


class TopicRecords:
    """The records of one topic; no group is joined, and nothing is committed."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic

    def read(self) -> Iterator[tuple[Record, bool]]:
        """Return records and whether they are settled: as far as transactions have ended, then others.

        A transaction that is open hides what comes after it, also what is not part of any transaction.
        """
        with Admin(self._connection) as admin:
            if not admin.topic_ids([self._topic]):
                return
            ends = admin.latest(admin.partitions([self._topic]))
            position = admin.earliest(ends)
        yield from self._read(position, ends, is_settled=True)
        left = {where: offset for where, offset in position.items() if offset < ends[where]}
        yield from self._read(left, ends, is_settled=False)

    def _read(
        self, position: dict[Partition, int], ends: dict[Partition, int], *, is_settled: bool
    ) -> Iterator[tuple[Record, bool]]:
        """Read from these offsets on, and move them to the end of what was read."""
        if not position:
            return
        isolation = "read_committed" if is_settled else "read_uncommitted"
        how: dict[str, Any] = {"isolation_level": isolation, "enable_auto_commit": False}
        with Consumer(self._connection, NO_GROUP, **how) as consumer:
            for records in read_span(consumer, dict(position), ends):
                for record in records:
                    position[record.topic, record.partition] = record.offset + 1
                    yield record, is_settled

    def append(self, records: Iterable[Whole]) -> None:
        """Send records, and wait until all in-sync replicas have them."""
        with Admin(self._connection) as admin:
            size = max(admin.largest_record(self._topic) or 0, 1_000_000)
        with Producer(self._connection, acks="all", message_max_bytes=size) as producer:
            for key, value, headers in records:
                producer.produce(self._topic, key, value, headers=headers)
