"""confluent_kafka's answers become Penstock's plain values: one small function for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)

from penstock.errors import ConfigError
from penstock.kafka.admin.model import (
    GroupInfo,
    GroupPosition,
    GroupTold,
    MemberInfo,
    PartitionInfo,
    Setting,
    SettingSource,
    TopicInfo,
)
from penstock.kafka.handle import Partition

_SOURCES: dict[int, SettingSource] = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value: "topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG.value: "broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value: "cluster",
    ConfigSource.STATIC_BROKER_CONFIG.value: "file",
    ConfigSource.DEFAULT_CONFIG.value: "default",
}


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


def setting_line(entry: Any) -> Setting:
    """A setting of a described topic; a secret one without its value."""
    return Setting(
        name=entry.name,
        value="***" if entry.is_sensitive else entry.value,
        source=_SOURCES.get(entry.source, "unknown"),
        read_only=entry.is_read_only,
    )


def changes_of(topic: str, changes: Mapping[str, object]) -> ConfigResource:
    """What is to be set (a value) and unset (None) for a topic."""
    entries = [_change(name, value) for name, value in changes.items()]
    return ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)


def _change(name: str, value: object) -> ConfigEntry:
    kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    text = None if value is None else written(value)
    return ConfigEntry(name, text, incremental_operation=kind)


def written(value: object) -> str:
    """A setting's value as brokers read and write it.

    >>> written(True), written(60_000), written(["compact", "delete"])
    ('true', '60000', 'compact,delete')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


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


def group_told(told: Any) -> GroupTold:
    """A described group."""
    return GroupTold(
        state=told.state.name.lower(),
        protocol=told.type.name.lower(),
        assignor=told.partition_assignor,
        simple=told.is_simple_consumer_group,
        members=tuple(map(member_line, told.members)),
    )


def is_dead(group: Any) -> bool:
    """Brokers before Kafka 4 describe a group that does not exist as a dead one."""
    return bool(group.state == ConsumerGroupState.DEAD)


def group_missing(group: str, existing: Sequence[str]) -> ConfigError:
    """The error for a group that is not there, with the groups that were probably meant."""
    close = get_close_matches(group, existing, n=3, cutoff=0.5)
    known = f"the nearest: {', '.join(close)}" if close else "'penstock groups list' shows them all"
    return ConfigError(f"there is no consumer group {group!r}; {known}")
