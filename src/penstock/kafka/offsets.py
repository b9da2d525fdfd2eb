"""Offsets, read and committed by a consumer that never joins a group.

Not by librdkafka's admin client (2.16): that one crashes the process when it asks for a group's offsets
while the group's coordinator moves, and when it asks for a partition's while leaders come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Consumer as Client

from penstock.config import ConnectionLike
from penstock.errors import GroupInUseError, TransientError
from penstock.kafka.bounded import MARGIN, BoundedCalls, settled
from penstock.kafka.handle import Closed, Handle, Partition
from penstock.kafka.kafka_errors import code_of
from penstock.kafka.partitions import raise_errors_of

# What a coordinator answers to a commit from outside while consumers are members of the group.
_MEMBERS = (
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
)
EARLIEST: int = OFFSET_BEGINNING
LATEST: int = OFFSET_END
NO_GROUP = "penstock-without-group"
"""librdkafka wants a group even from a client that needs none; nothing is committed under it."""


class CommittedOffset(NamedTuple):
    """What a group committed for a partition: the next offset, and the text that was stored with it."""

    offset: int
    metadata: str


class OffsetClient:
    """A consumer that never joins its group, over a connection that stays open between questions."""

    def __init__(
        self, connection: ConnectionLike, group: str, timeout: float = 10.0, **overrides: Any
    ) -> None:
        self.group = group
        self.timeout = timeout
        # A commit waits for the coordinator and then for its answer, each for the time-out.
        self._bounded = BoundedCalls()
        self._limit = 2 * timeout + MARGIN
        settings = {**overrides, **_never_joins(group, timeout)}
        # What is committed now, as Kafka's own tool reports it. Else an open transaction of the group, or
        # one that a crash left open, would keep us waiting for its end.
        settings["isolation.level"] = settings.pop("isolation_level", "read_uncommitted")
        self._handle = Handle(connection, "consumer", **settings)
        with self._handle.translated(f"making a client of group {group!r}"):
            self._client: Any = Client(self._handle.settings())

    def close(self) -> None:
        """Close the connection; the group's offsets stay as they are."""
        self._bounded.close(self._client.close)
        self._client = Closed("client that reads offsets")

    def _ask(self, doing: str, call: Callable[[], Any]) -> Any:
        self._handle.seen.clear()
        try:
            return settled(
                lambda: self._bounded(doing, self._limit, lambda: self._answer(call)), self.timeout
            )
        except KafkaException as problem:
            self._client.poll(0)
            raise self._handle.translate(problem.args[0], doing) from problem

    def _answer(self, call: Callable[[], Any]) -> Any:
        try:
            return raise_errors_of(call())
        finally:
            # No one else polls this client: serve its log messages, or they pile up in memory.
            self._client.poll(0)


class GroupOffsets(OffsetClient):
    """The committed offsets of one group, over a connection that stays open between commits.

    Spark reads partitions without a consumer group; this client commits the group's offsets.

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
        """Return what the group committed, in all partitions of the cluster or in the given ones."""
        return {
            place: each.offset for place, each in self.committed_with_metadata(partitions).items()
        }

    def committed_with_metadata(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, CommittedOffset]:
        """Return the committed offsets, each with the text that was committed with it."""
        asked = (
            self._everything() if partitions is None else [TopicPartition(*p) for p in partitions]
        )
        if not asked:
            return {}
        call = partial(self._client.committed, asked, timeout=self.timeout)
        answer = self._ask(f"reading the offsets of group {self.group!r}", call)
        return {
            (p.topic, p.partition): CommittedOffset(p.offset, p.metadata or "")
            for p in answer
            if p.offset >= 0
        }

    def commit(
        self, offsets: Mapping[Partition, int], metadata: str | Mapping[Partition, str] = ""
    ) -> None:
        """Commit the offset of the next record to read, for each partition; wait for the answer.

        `metadata` is a short text that Kafka stores with each of the offsets, or one for each partition.
        """
        if not offsets:
            return
        texts = dict.fromkeys(offsets, metadata) if isinstance(metadata, str) else metadata
        wanted = [
            TopicPartition(*where, offset, metadata=texts[where])
            for where, offset in offsets.items()
        ]
        call = partial(self._client.commit, offsets=wanted, asynchronous=False)
        try:
            self._ask(f"committing the offsets of group {self.group!r}", call)
        except TransientError as error:
            if code_of(error) in _MEMBERS:
                raise GroupInUseError(
                    f"group {self.group!r} has members of its own, and only they may commit its offsets; "
                    "end those consumers, or use another group"
                ) from error
            raise

    def _everything(self) -> list[TopicPartition]:
        call = partial(self._client.list_topics, timeout=self.timeout)
        topics = self._ask(f"reading the offsets of group {self.group!r}", call).topics
        return [TopicPartition(t.topic, p) for t in topics.values() for p in t.partitions]


class PartitionOffsets(OffsetClient):
    """Which offsets partitions hold, asked of their leaders."""

    def __init__(self, connection: ConnectionLike, timeout: float, **overrides: Any) -> None:
        super().__init__(connection, NO_GROUP, timeout, **overrides)

    def at(self, moment: int, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the first offset at or after a time (EARLIEST, LATEST or milliseconds), else -1."""
        asked = [TopicPartition(*where, moment) for where in partitions]
        call = partial(self._client.offsets_for_times, asked, timeout=self.timeout)
        answer = self._ask("reading offsets", call)
        return {(p.topic, p.partition): p.offset for p in answer}

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
    }
