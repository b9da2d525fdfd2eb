"""A group's offsets, read and committed by someone who never joins the group.

Spark reads partitions without a consumer group; this keeps the group's place in Kafka all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaException, TopicPartition

from penstock.config import Connection
from penstock.kafka.admin import Admin
from penstock.kafka.errors import translate
from penstock.kafka.handle import Handle, Partition


class GroupOffsets:
    """The committed offsets of one group, over a connection that stays open between commits.

    Examples
    --------
    ::

        with GroupOffsets(connection, "trades-to-table") as offsets:
            offsets.commit({("trades", 0): 42})
            offsets.committed()  # {("trades", 0): 42}
    """

    def __init__(self, connection: Connection, group: str, timeout: float = 10.0) -> None:
        self.group = group
        self._handle = Handle(connection, "consumer", **_never_joins(group, timeout))
        self._client: Any = Client(self._handle.settings())
        self._admin = Admin(connection, timeout)

    def __enter__(self) -> GroupOffsets:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def committed(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """What the group committed, in all partitions or in the given ones."""
        return self._admin.committed(self.group, partitions)

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the offset of the next record to read, for each partition; wait for the answer."""
        if not offsets:
            return
        wanted = [TopicPartition(*where, offset) for where, offset in offsets.items()]
        self._handle.seen.clear()
        try:
            self._check(self._client.commit(offsets=wanted, asynchronous=False))
        except KafkaException as problem:
            raise self._translated(problem) from problem
        # Nobody polls this client: serve what it has to log, or that piles up in memory.
        self._client.poll(0)

    def close(self) -> None:
        """Close both connections; the group's offsets stay as they are."""
        self._client.close()
        self._admin.close()

    def _check(self, answers: Iterable[TopicPartition]) -> None:
        for answer in answers:
            if answer.error is not None:
                raise KafkaException(answer.error)

    def _translated(self, problem: KafkaException) -> Exception:
        self._client.poll(0)
        doing = f"committing the offsets of group {self.group!r}"
        return translate(problem.args[0], doing, self._handle.brokers, self._handle.seen)


def _never_joins(group: str, timeout: float) -> dict[str, Any]:
    # A commit waits for the group's coordinator as long as a session may last.
    milliseconds = max(1000, int(timeout * 1000))
    return {
        "group.id": group,
        "enable.auto.commit": False,
        "session.timeout.ms": milliseconds,
        "heartbeat.interval.ms": max(1, milliseconds // 3),
        "socket.timeout.ms": milliseconds,
    }
