"""Reads the marks of a group, once all transactions that could change them have ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from penstock.config import Connection
from penstock.kafka.handle import Handle
from penstock.kafka.places import raise_errors_of
from penstock.kafka.settling import settled
from penstock.pipeline import Mark
from penstock.sinks.kafka.places import Stored
from penstock.sinks.kafka.spans import Span

_PATIENCE = 60.0


class Marks:
    """The marks of one group, read and written by somebody who never joins it."""

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
        """Return the marks that stand for these spans."""
        asked = [TopicPartition(span.topic, span.partition) for span in spans]
        with self._handle.translated(f"reading the marks in group {self.group!r}"):
            told = settled(lambda: self._committed(asked), _PATIENCE)
        return {
            (each.topic, each.partition): Stored(each.offset, mark_in(each.metadata))
            for each in told
            if each.offset >= 0 and each.metadata
        }

    def _committed(self, asked: list[TopicPartition]) -> list[TopicPartition]:
        told: list[TopicPartition] = self._client.committed(asked, timeout=_PATIENCE)
        raise_errors_of(told)
        return told

    def metadata(self) -> Any:
        """Return what a transaction needs to know of the group."""
        return self._client.consumer_group_metadata()

    def close(self) -> None:
        """Let go of the connection."""
        try:
            self._client.close()
        except KafkaException:
            return  # it never joined the group, so there is nothing to leave


def mark_in(note: str) -> Mark:
    """Return the mark in the name of a write.

    >>> mark_in("orders~1~17~0")
    Mark(epoch=1, batch=17, part=0)
    """
    epoch, batch, part = note.rsplit("~", 3)[1:]
    return Mark(int(epoch), int(batch), int(part))
