"""Reads the marks of a group, once all transactions that could change them have ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from penstock.config import Connection
from penstock.kafka.bounded import settled
from penstock.kafka.handle import Handle
from penstock.kafka.partitions import raise_errors_of
from penstock.kafka.producing.record_transaction import Transaction
from penstock.pipeline import Mark
from penstock.pipeline.source_log import Span
from penstock.sinks.kafka.task_marks import Stored

_PATIENCE = 60.0


class Marks:
    """The marks of one group, read and written by a client that never joins it."""

    def __init__(self, connection: Connection, group: str) -> None:
        self.group = group
        self._handle = Handle(
            connection,
            "consumer",
            group_id=group,
            enable_auto_commit=False,
            # Waits for the end of a transaction that holds one of the marks.
            isolation_level="read_committed",
        )
        with self._handle.translated(f"making a client of group {group!r}"):
            self._client: Any = Consumer(self._handle.settings())

    def read(self, spans: Iterable[Span]) -> dict[tuple[str, int], Stored]:
        """Return the marks of these spans."""
        asked = [TopicPartition(span.topic, span.partition) for span in spans]
        with self._handle.translated(f"reading the marks in group {self.group!r}"):
            committed = settled(
                lambda: raise_errors_of(self._client.committed(asked, timeout=_PATIENCE)), _PATIENCE
            )
        return marks_in(
            ((each.topic, each.partition), each.offset, each.metadata) for each in committed
        )

    def commit(self, transaction: Transaction, notes: Mapping[Span, str]) -> None:
        """Commit a transaction together with marks: the ends of these spans."""
        marks = [
            TopicPartition(span.topic, span.partition, span.end, metadata=note)
            for span, note in notes.items()
        ]
        transaction.commit(marks, self._client.consumer_group_metadata())

    def close(self) -> None:
        """Let go of the connection."""
        try:
            self._client.close()
        except KafkaException:
            return  # it never joined the group, so there is nothing to leave


_MARK = r"(\d{1,18})~(-?\d{1,18})~(\d{1,18})"
_NOTE = re.compile(rf".+~{_MARK}(?:@(\d{{1,18}}))?(?:<{_MARK})?")


def note_of(label: str, start: int, before: Mark | None = None) -> str:
    """Return what is committed with a mark's offset: whose write it is, and where its records begin.

    A claim also keeps the mark of the write before it.

    >>> note_of("orders~1~17~0", 5)
    'orders~1~17~0@5'
    """
    return f"{label}@{start}" + (f"<{'~'.join(map(str, before))}" if before else "")


def stored_in(offset: int, note: str) -> Stored | None:
    """Return the mark in a committed offset and its metadata; None where it is not a mark.

    >>> stored_in(9, "orders~1~17~0@5")
    Stored(offset=9, mark=Mark(epoch=1, batch=17, part=0), start=5, before=None)
    >>> stored_in(9, note_of("orders~2~-1~0", 5, Mark(1, 17, 0))).written
    Mark(epoch=1, batch=17, part=0)
    >>> stored_in(9, "by hand") is None
    True
    """
    if offset < 0 or not (match := _NOTE.fullmatch(note)):
        return None
    mark, start, before = match.groups()[:3], match[4], match.groups()[4:]
    return Stored(
        offset,
        Mark(*map(int, mark)),
        int(start) if start else None,
        Mark(*map(int, before)) if match[5] else None,
    )


def marks_in(
    committed: Iterable[tuple[tuple[str, int], int, str | None]],
) -> dict[tuple[str, int], Stored]:
    """Return the marks among committed offsets: partition, offset and metadata of each."""
    read = ((where, stored_in(offset, note or "")) for where, offset, note in committed)
    return {where: stored for where, stored in read if stored}
