"""Offsets, read and committed by a consumer that never joins a group.

Not by librdkafka's admin client (2.16): that one crashes the process when it asks for a group's offsets
while the group's coordinator moves, and when it asks for a partition's while leaders come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException, TopicPartition
from confluent_kafka import Consumer as Client

from penstock.config import ConnectionLike
from penstock.kafka.closed import Closed
from penstock.kafka.handle import Handle, Partition
from penstock.kafka.places import raise_errors_of
from penstock.kafka.settling import settled

EARLIEST: int = OFFSET_BEGINNING
LATEST: int = OFFSET_END
NO_GROUP = "penstock-without-group"
"""librdkafka wants a group even from a client that needs none; nothing is committed under it."""


class Bystander:
    """A consumer that never joins its group, over a connection that stays open between questions."""

    def __init__(
        self, connection: ConnectionLike, group: str, timeout: float = 10.0, **overrides: Any
    ) -> None:
        self.group = group
        self.timeout = timeout
        settings = {**overrides, **_never_joins(group, timeout)}
        self._handle = Handle(connection, "consumer", **settings)
        with self._handle.translated(f"making a client of group {group!r}"):
            self._client: Any = Client(self._handle.settings())

    def close(self) -> None:
        """Close the connection; the group's offsets stay as they are."""
        self._client.close()
        self._client = Closed("client that reads offsets")

    def _ask(self, doing: str, call: Callable[[], Any]) -> Any:
        self._handle.seen.clear()
        try:
            return settled(lambda: self._answer(call), self.timeout)
        except KafkaException as problem:
            self._client.poll(0)
            raise self._handle.translate(problem.args[0], doing) from problem

    def _answer(self, call: Callable[[], Any]) -> Any:
        try:
            answer = call()
            raise_errors_of(answer)
        finally:
            # Nobody polls this client: serve what it has to log, or that piles up in memory.
            self._client.poll(0)
        return answer


class GroupOffsets(Bystander):
    """The committed offsets of one group, over a connection that stays open between commits.

    Spark reads partitions without a consumer group; this keeps the group's place in Kafka all the same.

    Examples
    --------
    ::

        with GroupOffsets(connection, "trades-to-table") as offsets:
            offsets.commit({("trades", 0): 42})
            offsets.committed()  # {("trades", 0): 42}

    `timeout` is in seconds, for each question; other keywords are settings of librdkafka or `oauth_cb`.
    """

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
        call = partial(self._client.committed, asked, timeout=self.timeout)
        told = self._ask(f"reading the offsets of group {self.group!r}", call)
        return {(p.topic, p.partition): p.offset for p in told if p.offset >= 0}

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the offset of the next record to read, for each partition; wait for the answer."""
        if not offsets:
            return
        wanted = [TopicPartition(*where, offset) for where, offset in offsets.items()]
        call = partial(self._client.commit, offsets=wanted, asynchronous=False)
        self._ask(f"committing the offsets of group {self.group!r}", call)

    def _everything(self) -> list[TopicPartition]:
        call = partial(self._client.list_topics, timeout=self.timeout)
        topics = self._ask(f"reading the offsets of group {self.group!r}", call).topics
        return [TopicPartition(t.topic, p) for t in topics.values() for p in t.partitions]


class PartitionOffsets(Bystander):
    """Which offsets partitions hold, asked of their leaders."""

    def __init__(self, connection: ConnectionLike, timeout: float, **overrides: Any) -> None:
        super().__init__(connection, NO_GROUP, timeout, **overrides)

    def at(self, moment: int, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset at or after a moment (EARLIEST, LATEST or milliseconds); -1 where none is."""
        asked = [TopicPartition(*where, moment) for where in partitions]
        call = partial(self._client.offsets_for_times, asked, timeout=self.timeout)
        told = self._ask("reading offsets", call)
        return {(p.topic, p.partition): p.offset for p in told}

    def look_anew(self) -> None:
        """Forget which partitions there are, and who leads them: it is asked for once and remembered."""
        self._ask("reading offsets", partial(self._client.list_topics, timeout=self.timeout))


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
