"""confluent_kafka's answers become Penstock's plain values: one small function for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    ConfigResource,
    ConfigSource,
    OffsetSpec,
)

from penstock.errors import ConfigError
from penstock.kafka.handle import Partition
from penstock.kafka.model import (
    GroupDetail,
    GroupInfo,
    GroupPosition,
    MemberInfo,
    PartitionInfo,
    TopicInfo,
)

# typed here once: confluent_kafka's own constructors have no types
EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]


def topic_line(topic: Any) -> TopicInfo:
    """A topic of the cluster's metadata."""
    replication = max((len(p.replicas) for p in topic.partitions.values()), default=0)
    internal = topic.topic.startswith("__")
    return TopicInfo(topic.topic, len(topic.partitions), replication, internal)


def partition_line(partition: Any, earliest: int, latest: int) -> PartitionInfo:
    """A partition of a described topic, with its offsets."""
    return PartitionInfo(
        partition=partition.id,
        leader=None if partition.leader is None else partition.leader.id,
        replicas=tuple(node.id for node in partition.replicas),
        isr=tuple(node.id for node in partition.isr),
        earliest=earliest,
        latest=latest,
    )


def config_of(topic: str) -> ConfigResource:
    """The name under which the broker keeps a topic's settings."""
    return ConfigResource(ConfigResource.Type.TOPIC, topic)


def own_settings(entries: Mapping[str, Any]) -> dict[str, str]:
    """The settings that were made for this very topic, and are not the broker's."""
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {
        name: "***" if entry.is_sensitive else entry.value
        for name, entry in sorted(entries.items())
        if entry.source == own
    }


def group_line(group: Any) -> GroupInfo:
    """A group of the list of groups."""
    return GroupInfo(group.group_id, group.state.name.lower(), group.type.name.lower())


def member_line(member: Any) -> MemberInfo:
    """A member of a described group."""
    given = sorted((tp.topic, tp.partition) for tp in member.assignment.topic_partitions)
    return MemberInfo(member.member_id, member.client_id, member.host, tuple(given))


def positions(
    touched: Iterable[Partition],
    committed: Mapping[Partition, int],
    ends: Mapping[Partition, int],
    owners: Mapping[Partition, str],
) -> tuple[GroupPosition, ...]:
    """Where a group stands in each partition."""
    return tuple(
        GroupPosition(*where, committed.get(where), ends.get(where), owners.get(where))
        for where in touched
    )


def group_detail(
    name: str,
    told: Any,
    members: tuple[MemberInfo, ...],
    where: tuple[GroupPosition, ...],
) -> GroupDetail:
    """A described group with what was asked beside it."""
    return GroupDetail(
        name=name,
        state=told.state.name.lower(),
        protocol=told.type.name.lower(),
        assignor=told.partition_assignor,
        members=members,
        positions=where,
    )


def is_dead(group: Any) -> bool:
    """Brokers before Kafka 4 describe a group that does not exist as a dead one."""
    return bool(group.state == ConsumerGroupState.DEAD)


def group_missing(group: str, existing: Sequence[str]) -> ConfigError:
    """The error for a group that is not there, with the groups that were probably meant."""
    close = get_close_matches(group, existing, n=3, cutoff=0.5)
    known = f"the nearest: {', '.join(close)}" if close else "'penstock groups list' shows them all"
    return ConfigError(f"there is no consumer group {group!r}; {known}")
