"""A group's offsets, read and committed by someone who never joins the group.

Spark reads partitions without a consumer group; this keeps the group's place in Kafka all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaException, TopicPartition

from penstock.config import ConnectionLike
from penstock.kafka.closed import Closed
from penstock.kafka.errors import translate
from penstock.kafka.handle import Handle, Partition
from penstock.kafka.places import raise_errors_of
from penstock.kafka.settling import settled


class GroupOffsets:
    """The committed offsets of one group, over a connection that stays open between commits.

    It is a consumer underneath, not librdkafka's admin client: that one has no group of its own, and
    crashes the process (2.16) when it asks for offsets while the group's coordinator moves.

    Examples
    --------
    ::

        with GroupOffsets(connection, "trades-to-table") as offsets:
            offsets.commit({("trades", 0): 42})
            offsets.committed()  # {("trades", 0): 42}
    """

    def __init__(self, connection: ConnectionLike, group: str, timeout: float = 10.0) -> None:
        self.group = group
        self.timeout = timeout
        self._handle = Handle(connection, "consumer", **_never_joins(group, timeout))
        with self._handle.translated(f"making a client of group {group!r}"):
            self._client: Any = Client(self._handle.settings())

    def __enter__(self) -> GroupOffsets:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def committed(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """What the group committed, in all partitions of the cluster or in the given ones."""
        asked = (
            self._everything() if partitions is None else [TopicPartition(*p) for p in partitions]
        )
        if not asked:
            return {}
        told = self._ask("reading", lambda: self._client.committed(asked, timeout=self.timeout))
        return {(p.topic, p.partition): p.offset for p in told if p.offset >= 0}

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the offset of the next record to read, for each partition; wait for the answer."""
        if not offsets:
            return
        wanted = [TopicPartition(*where, offset) for where, offset in offsets.items()]
        self._ask("committing", lambda: self._client.commit(offsets=wanted, asynchronous=False))

    def close(self) -> None:
        """Close the connection; the group's offsets stay as they are."""
        self._client.close()
        self._client = Closed("client of a group's offsets")

    def _everything(self) -> list[TopicPartition]:
        topics = self._ask("reading", lambda: self._client.list_topics(timeout=self.timeout)).topics
        return [TopicPartition(t.topic, p) for t in topics.values() for p in t.partitions]

    def _ask(self, doing: str, call: Callable[[], Any]) -> Any:
        self._handle.seen.clear()
        try:
            return settled(lambda: self._answer(call), self.timeout)
        except KafkaException as problem:
            raise self._translated(doing, problem) from problem

    def _answer(self, call: Callable[[], Any]) -> Any:
        try:
            answer = call()
            raise_errors_of(answer)
        finally:
            # Nobody polls this client: serve what it has to log, or that piles up in memory.
            self._client.poll(0)
        return answer

    def _translated(self, doing: str, problem: KafkaException) -> Exception:
        self._client.poll(0)
        what = f"{doing} the offsets of group {self.group!r}"
        return translate(problem.args[0], what, self._handle.brokers, self._handle.seen)


def _never_joins(group: str, timeout: float) -> dict[str, Any]:
    # A commit waits for the group's coordinator as long as a session may last.
    milliseconds = max(1000, int(timeout * 1000))
    return {
        "group.id": group,
        "enable.auto.commit": False,
        "session.timeout.ms": milliseconds,
        "heartbeat.interval.ms": max(1, milliseconds // 3),
        "socket.timeout.ms": milliseconds,
        # What is committed now, as Kafka's own tool tells it. Else an open transaction of the group, or
        # one that a crash left behind, would keep us waiting for its end.
        "isolation.level": "read_uncommitted",
    }
