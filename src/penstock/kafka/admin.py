"""The cluster as an administrator and the engine see it: topics, groups, offsets.

Every call has a time-out, and every failure is one of Penstock's errors.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka import TopicCollection as Names
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    NewTopic,
    OffsetSpec,
)

from penstock.config import Connection
from penstock.errors import BrokerUnavailableError
from penstock.kafka import describe
from penstock.kafka.errors import MOVING, REFUSED, topic_missing, translate
from penstock.kafka.handle import Handle, Partition
from penstock.kafka.model import GroupDetail, GroupInfo, TopicDetail, TopicInfo
from penstock.kafka.offsets import GroupOffsets

_PAUSE = 0.05
_NO_GROUP = KafkaError.GROUP_ID_NOT_FOUND


class Admin:
    """Ask a cluster about itself, and change it.

    Examples
    --------
    ::

        with Admin(connection) as admin:
            admin.create_topic("trades", partitions=3)
            admin.latest(admin.partitions(["trades"]))  # {("trades", 0): 0, ...}
    """

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        self.timeout = timeout
        self._connection = connection
        self._handle = Handle(connection, "admin")
        self._client: Any = AdminClient(self._handle.settings())

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections. A closed Admin cannot be used again."""
        self._client = None

    # -- topics

    def topics(self, internal: bool = False) -> list[TopicInfo]:
        """Every topic by name; those of Kafka itself (names with two underscores) on request."""
        metadata = self._metadata("listing the topics")
        found = [describe.topic_line(topic) for topic in metadata.topics.values()]
        return sorted((t for t in found if internal or not t.internal), key=lambda t: t.name)

    def describe_topic(self, name: str) -> TopicDetail:
        """Partitions with leader, replicas and offsets, and the settings that are not default."""
        doing = f"describing topic {name!r}"
        partitions = self._describe([name])[name].partitions
        ids = [(name, partition.id) for partition in partitions]
        earliest, latest = self.earliest(ids), self.latest(ids)
        config = self._each(doing, self._client.describe_configs, [describe.config_of(name)])
        lines = tuple(
            describe.partition_line(p, earliest[name, p.id], latest[name, p.id]) for p in partitions
        )
        return TopicDetail(name, lines, describe.own_settings(next(iter(config.values()))))

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic, and return when it can be used. What is not given is up to the broker."""
        wanted = NewTopic(
            name,
            num_partitions=partitions or -1,
            replication_factor=replication or -1,
            config={key: str(value) for key, value in (config or {}).items()},
        )
        self._each(f"creating topic {name!r}", self._client.create_topics, [wanted])
        self._until(f"topic {name!r} has a leader", lambda: self._is_usable(name))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with everything in it, and return when it is gone."""
        self._describe([name])
        self._each(f"deleting topic {name!r}", self._client.delete_topics, [name])
        self._until(f"topic {name!r} is gone", lambda: not self._exists(name))

    # -- groups

    def groups(self) -> list[GroupInfo]:
        """Every consumer group by name."""
        result = self._one("listing the groups", self._client.list_consumer_groups)
        return sorted((describe.group_line(g) for g in result.valid), key=lambda g: g.name)

    def describe_group(self, group: str) -> GroupDetail:
        """State, members, and for every partition the committed offset, the end and the lag."""
        told = self._described_group(group)
        members = tuple(describe.member_line(member) for member in told.members)
        committed = self.committed(group)
        owners = {partition: m.id for m in members for partition in m.partitions}
        touched = sorted({*committed, *owners})
        ends = self.latest(self._existing(touched))
        positions = describe.positions(touched, committed, ends, owners)
        return describe.group_detail(group, told, members, positions)

    # -- offsets

    def partitions(self, topics: Iterable[str] | re.Pattern[str]) -> list[Partition]:
        """Every partition of the given topics, or of the topics that match a pattern as a whole."""
        if isinstance(topics, re.Pattern):
            topics = [t.name for t in self.topics() if topics.fullmatch(t.name)]
        names = list(dict.fromkeys([topics] if isinstance(topics, str) else topics))
        told = self._describe(names)
        return sorted((name, p.id) for name in names for p in told[name].partitions)

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset that each partition still has."""
        return self._offsets(partitions, describe.EARLIEST)

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset that each partition's next record will get."""
        return self._offsets(partitions, describe.LATEST)

    def offsets_at(
        self, timestamp_ms: int, partitions: Iterable[Partition]
    ) -> dict[Partition, int]:
        """The first offset at or after a time; the end where no record is that young."""
        found = self._offsets(partitions, OffsetSpec.for_timestamp(timestamp_ms))
        young = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.latest(young)}

    def committed(
        self, group: str, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, int]:
        """What a group committed; partitions without a committed offset are not in the answer."""
        with GroupOffsets(self._connection, group, self.timeout) as offsets:
            return offsets.committed(partitions)

    # -- how a question is put

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        # What the connection reported before this call says nothing about this call.
        self._handle.seen.clear()
        try:
            yield
        except KafkaException as problem:
            self._client.poll(0)
            raise translate(
                problem.args[0], doing, self._handle.brokers, self._handle.seen
            ) from problem

    def _one(self, doing: str, call: Callable[..., Any], *args: Any) -> Any:
        with self._asking(doing):
            return self._wait(call(*args, request_timeout=self.timeout))

    def _each(
        self, doing: str, call: Callable[..., Any], *args: Any, quiet: int | None = None
    ) -> dict[Any, Any]:
        """Every answer of one question; an answer that is an error of code `quiet` is left out."""
        deadline = time.monotonic() + self.timeout
        with self._asking(doing):
            while True:
                futures = call(*args, request_timeout=self.timeout)
                try:
                    return self._answers(futures, quiet)
                except KafkaException as problem:
                    if problem.args[0].code() not in MOVING or time.monotonic() > deadline:
                        raise
                time.sleep(_PAUSE)

    def _answers(self, futures: Mapping[Any, Future[Any]], quiet: int | None) -> dict[Any, Any]:
        answers = {}
        for what, future in futures.items():
            try:
                answers[what] = self._wait(future)
            except KafkaException as problem:
                if problem.args[0].code() != quiet:
                    raise
        return answers

    def _wait(self, future: Future[Any]) -> Any:
        while True:
            try:
                return future.result(timeout=0.1)
            except NotYet:
                self._give_up_early()

    def _give_up_early(self) -> None:
        # A refused password does not get better by waiting for the time-out.
        self._client.poll(0)
        for error in list(self._handle.seen):
            if error.code() in REFUSED:
                raise KafkaException(error)

    def _metadata(self, doing: str) -> Any:
        # list_topics blocks deaf until its time-out; the cluster's description does not.
        self._one(doing, self._client.describe_cluster)
        with self._asking(doing):
            return self._client.list_topics(timeout=self.timeout)

    def _describe(self, names: list[str]) -> dict[str, Any]:
        if not names:
            return {}
        call, doing = self._client.describe_topics, f"looking up topic {', '.join(names)}"
        told = self._each(doing, call, Names(names), quiet=KafkaError.UNKNOWN_TOPIC_OR_PART)
        for name in names:
            if name not in told:
                raise topic_missing(name, [topic.name for topic in self.topics()])
        return told

    def _exists(self, name: str) -> bool:
        return name in self._metadata(f"looking for topic {name!r}").topics

    def _is_usable(self, name: str) -> bool:
        topic = self._metadata(f"looking for topic {name!r}").topics.get(name)
        return topic is not None and all(p.leader >= 0 for p in topic.partitions.values())

    def _existing(self, partitions: Iterable[Partition]) -> list[Partition]:
        topics = self._metadata("looking up partitions").topics
        return [(t, p) for t, p in partitions if t in topics and p in topics[t].partitions]

    def _offsets(self, partitions: Iterable[Partition], spec: OffsetSpec) -> dict[Partition, int]:
        asked = {TopicPartition(*partition): spec for partition in partitions}
        if not asked:
            return {}
        told = self._each("reading offsets", self._client.list_offsets, asked)
        return {(tp.topic, tp.partition): info.offset for tp, info in told.items()}

    def _described_group(self, group: str) -> Any:
        call, doing = self._client.describe_consumer_groups, f"describing group {group!r}"
        told = self._each(doing, call, [group], quiet=_NO_GROUP).get(group)
        if told is None or describe.is_dead(told):
            raise describe.group_missing(group, [g.name for g in self.groups()])
        return told

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self.timeout
        while not holds():
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    f"waited {self.timeout:g} s until {what} on {self._handle.brokers}; "
                    "look at the broker's log, or give a longer time-out"
                )
            time.sleep(_PAUSE)
