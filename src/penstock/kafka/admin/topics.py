"""Topics as an administrator changes them: made, grown, set up, emptied and deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)

from penstock.errors import ConfigError
from penstock.kafka.admin.admin_calls import AdminCalls
from penstock.kafka.admin.admin_model import PartitionInfo, Setting, SettingSource, TopicDetail
from penstock.kafka.admin.lookup import (
    Watermarks,
    has_leaders,
    look_up,
    require_leaders,
    topics_now,
)
from penstock.kafka.handle import Partition

_SOON = 2.0
_SOURCES: dict[int, SettingSource] = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value: "topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG.value: "broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value: "cluster",
    ConfigSource.STATIC_BROKER_CONFIG.value: "file",
    ConfigSource.DEFAULT_CONFIG.value: "default",
}


def describe_topic(ask: AdminCalls, name: str) -> TopicDetail:
    """Return partitions with leader, replicas and offsets, and the settings of its own."""
    partitions = look_up(ask, [name])[name].partitions
    ids = [(name, partition.id) for partition in partitions]
    marks = Watermarks(ask)
    earliest, latest = marks.earliest(ids), marks.latest(ids)
    lines = tuple(
        PartitionInfo(
            partition=p.id,
            leader=None if p.leader is None else p.leader.id,
            replicas=tuple(node.id for node in p.replicas),
            isr=tuple(node.id for node in p.isr),
            earliest=earliest[name, p.id],
            latest=latest[name, p.id],
        )
        for p in partitions
    )
    own = {s.name: s.value or "" for s in read_settings(ask, name) if s.own}
    return TopicDetail(name, lines, own)


def create_topic(
    ask: AdminCalls,
    name: str,
    partitions: int | None,
    replication: int | None,
    config: Mapping[str, object],
) -> None:
    """Make a topic, and wait until each of its partitions has a leader."""
    wanted = NewTopic(
        name,
        num_partitions=-1 if partitions is None else partitions,
        replication_factor=-1 if replication is None else replication,
        config={key: written(value) for key, value in config.items()},
    )
    ask.each(f"creating topic {name!r}", ask.client.create_topics, [wanted])
    ask.until(f"topic {name!r} has a leader", lambda: has_leaders(ask, name))


def delete_topic(ask: AdminCalls, name: str) -> None:
    """Delete a topic, and wait until it is gone."""
    look_up(ask, [name])
    ask.each(f"deleting topic {name!r}", ask.client.delete_topics, [name])
    ask.until(f"topic {name!r} is gone", lambda: name not in topics_now(ask, name))


def add_partitions(ask: AdminCalls, name: str, total: int) -> None:
    """Let a topic have `total` partitions, and wait until each of them has a leader."""
    before = len(look_up(ask, [name])[name].partitions)
    if total <= before:
        raise ConfigError(
            f"topic {name!r} has {before} partitions, and {total} were asked for: "
            f"partitions can only be added; give at least {before + 1}"
        )
    doing = f"adding partitions to topic {name!r}"
    ask.each(doing, ask.client.create_partitions, [NewPartitions(name, total)])
    ask.until(f"topic {name!r} has {total} partitions", lambda: has_leaders(ask, name, total))


def read_settings(ask: AdminCalls, name: str) -> tuple[Setting, ...]:
    """Return every setting that holds for a topic, by name; a secret one without its value."""
    doing = f"reading the settings of topic {name!r}"
    topic = ConfigResource(ConfigResource.Type.TOPIC, name)
    answer = ask.each(doing, ask.client.describe_configs, [topic])
    return _settings(next(iter(answer.values())))


def _settings(entries: Mapping[str, Any]) -> tuple[Setting, ...]:
    return tuple(
        Setting(
            name=entry.name,
            value="***" if entry.is_sensitive else entry.value,
            source=_SOURCES.get(entry.source, "unknown"),
            read_only=entry.is_read_only,
        )
        for _, entry in sorted(entries.items())
    )


def settings_of(ask: AdminCalls, names: Iterable[str]) -> dict[str, tuple[Setting, ...]]:
    """Return every setting of each topic, from one request; a missing topic is left out."""
    topics = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in dict.fromkeys(names)]
    if not topics:
        return {}
    missing = KafkaError.UNKNOWN_TOPIC_OR_PART
    doing = "reading the settings of topics"
    answer = ask.each(doing, ask.client.describe_configs, topics, quiet=missing)
    return {topic.name: _settings(entries) for topic, entries in answer.items()}


def alter_settings(ask: AdminCalls, name: str, changes: Mapping[str, object]) -> None:
    """Set settings that have a value and unset those that are None; others do not change."""
    look_up(ask, [name])
    doing = f"changing the settings of topic {name!r}"
    texts = {key: None if value is None else written(value) for key, value in changes.items()}
    entries = [_change(key, text) for key, text in texts.items()]
    topic = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
    ask.each(doing, ask.client.incremental_alter_configs, [topic])

    def are_applied() -> bool:
        own = {setting.name: setting.value for setting in read_settings(ask, name) if setting.own}
        return all(
            own.get(key) == (text and text.replace(", ", ",")) for key, text in texts.items()
        )

    # The controller has accepted it; brokers report it a moment later, in their own spelling.
    ask.settles(are_applied, _SOON)


def _change(name: str, text: str | None) -> ConfigEntry:
    kind = AlterConfigOpType.DELETE if text is None else AlterConfigOpType.SET
    return ConfigEntry(name, text, incremental_operation=kind)


def written(value: object) -> str:
    """Return a setting's value as brokers read and write it.

    >>> written(True), written(60_000), written(["compact", "delete"])
    ('true', '60000', 'compact,delete')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def delete_records(ask: AdminCalls, before: Mapping[Partition, int]) -> dict[Partition, int]:
    """Delete the records before an offset, for each partition; return the first remaining offsets."""
    wanted = [TopicPartition(*where, offset) for where, offset in before.items()]
    if not wanted:
        return {}
    require_leaders(ask, before)  # a client that does not know them may crash (decision 018)
    answer = ask.each("deleting records", ask.client.delete_records, wanted)
    return {(tp.topic, tp.partition): done.low_watermark for tp, done in answer.items()}
