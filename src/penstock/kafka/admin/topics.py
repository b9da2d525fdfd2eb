"""Topics as an administrator changes them: made, grown, set up, emptied and deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    NewPartitions,
    NewTopic,
)

from penstock.errors import ConfigError
from penstock.kafka.admin import describe
from penstock.kafka.admin.asking import Asker
from penstock.kafka.admin.lookup import has_leaders, look_up, require_leaders, topics_now
from penstock.kafka.admin.model import Setting, TopicDetail
from penstock.kafka.admin.watermarks import Watermarks
from penstock.kafka.handle import Partition

_SOON = 2.0


def describe_topic(ask: Asker, name: str) -> TopicDetail:
    """Partitions with leader, replicas and offsets, and the settings of its own."""
    partitions = look_up(ask, [name])[name].partitions
    ids = [(name, partition.id) for partition in partitions]
    marks = Watermarks(ask)
    earliest, latest = marks.earliest(ids), marks.latest(ids)
    lines = tuple(
        describe.partition_line(p, earliest[name, p.id], latest[name, p.id]) for p in partitions
    )
    own = {s.name: s.value or "" for s in read_settings(ask, name) if s.own}
    return TopicDetail(name, lines, own)


def create_topic(ask: Asker, wanted: NewTopic) -> None:
    """Make a topic, and wait until each of its partitions has a leader."""
    name = wanted.topic
    ask.each(f"creating topic {name!r}", ask.client.create_topics, [wanted])
    ask.until(f"topic {name!r} has a leader", lambda: has_leaders(ask, name))


def delete_topic(ask: Asker, name: str) -> None:
    """Delete a topic, and wait until it is gone."""
    look_up(ask, [name])
    ask.each(f"deleting topic {name!r}", ask.client.delete_topics, [name])
    ask.until(f"topic {name!r} is gone", lambda: name not in topics_now(ask, name))


def add_partitions(ask: Asker, name: str, total: int) -> None:
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


def read_settings(ask: Asker, name: str) -> tuple[Setting, ...]:
    """Every setting that holds for a topic, by name."""
    doing = f"reading the settings of topic {name!r}"
    told = ask.each(doing, ask.client.describe_configs, [describe.config_of(name)])
    entries = next(iter(told.values())).values()
    return tuple(sorted(map(describe.setting_line, entries), key=lambda setting: setting.name))


def alter_settings(ask: Asker, name: str, changes: Mapping[str, object]) -> None:
    """Set what has a value and unset what is None; every other setting stays as it is."""
    look_up(ask, [name])
    doing = f"changing the settings of topic {name!r}"
    wanted = describe.changes_of(name, changes)
    ask.each(doing, ask.client.incremental_alter_configs, [wanted])
    # The controller has taken it; what brokers tell follows a moment later, in their own spelling.
    ask.settles(lambda: _are_told(read_settings(ask, name), changes), _SOON)


def delete_records(ask: Asker, before: Mapping[Partition, int]) -> dict[Partition, int]:
    """Delete the records before an offset, for each partition; give what is now the first offset."""
    wanted = [TopicPartition(*where, offset) for where, offset in before.items()]
    if not wanted:
        return {}
    require_leaders(ask, before)  # a client that does not know them may crash (decision 018)
    told = ask.each("deleting records", ask.client.delete_records, wanted)
    return {(tp.topic, tp.partition): done.low_watermark for tp, done in told.items()}


def _are_told(settings: Iterable[Setting], changes: Mapping[str, object]) -> bool:
    own = {setting.name: setting.value for setting in settings if setting.own}
    return all(own.get(name) == _as_told(value) for name, value in changes.items())


def _as_told(value: object) -> str | None:
    return None if value is None else describe.written(value).replace(", ", ",")
