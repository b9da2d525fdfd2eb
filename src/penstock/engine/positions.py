"""Decides where a pipeline starts: at its checkpoint, at the group's offsets, or at `start`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Checkpoint, Epoch, Planned
from penstock.errors import ConfigError, TerminalError, nearest
from penstock.kafka import Admin, GroupOffsets
from penstock.pipeline import Delivery, Offsets, Partition
from penstock.sources.kafka import AtOffsets, AtTime, KafkaSource

log = event_logger(__name__)


def find_epoch(
    checkpoint: Checkpoint,
    sources: Sequence[KafkaSource],
    delivery: Delivery,
    admin: Admin,
    group: GroupOffsets,
    *,
    commit: bool = True,
) -> Epoch:
    """Return the epoch to go on with, or begin a new one and commit its start to the group."""
    for source in sources:
        require_topics(source, admin)
    partitions = [admin.partitions(_wanted(source)) for source in sources]
    committed = group.committed([where for found in partitions for where in found])
    epoch = checkpoint.newest()
    last = epoch.last() if epoch else None
    if epoch and last and goes_on(committed, epoch.end_of(last.id - 1), last, delivery):
        return epoch
    start: Offsets = {}
    for source in sources:
        start |= starting_offsets(source, admin, committed)
    began = checkpoint.new(start)
    if commit:
        group.commit(start)
    log.info("epoch_began", epoch=began.number, moved=last is not None)
    return began


def goes_on(
    committed: Mapping[Partition, int], before: Offsets, last: Planned, delivery: Delivery
) -> bool:
    """Say whether the group stands where this pipeline left it.

    A batch that is done has committed its end. One that was under way has committed nothing yet or,
    if it was killed at the very end, its end. Offsets that expired say nothing: the checkpoint holds.
    """
    at_end = _stands_at(committed, last.end)
    if last.done:
        return at_end
    if delivery is Delivery.AT_MOST_ONCE and at_end and before != last.end:
        return False  # committed, then killed: its rows may be out already
    return all(
        committed.get(partition, end) in (end, before.get(partition, 0))
        for partition, end in last.end.items()
    )


def _stands_at(committed: Mapping[Partition, int], end: Offsets) -> bool:
    return all(committed.get(partition, offset) == offset for partition, offset in end.items())


def starting_offsets(
    source: KafkaSource, admin: Admin, committed: Mapping[Partition, int]
) -> Offsets:
    """Return an explicit offset for every partition: the committed one, else by `start`."""
    partitions = admin.partitions(_wanted(source))
    missing = [partition for partition in partitions if partition not in committed]
    if source.start == "committed" and missing:
        raise ConfigError(
            f"start is 'committed', and the group has no offset for {_named(missing)}; "
            "commit one, or start at earliest, latest, a timestamp or explicit offsets"
        )
    known = {partition: committed[partition] for partition in partitions if partition in committed}
    _refuse_lost(known, admin)
    return known | _by_start(source, admin, missing)


def _by_start(source: KafkaSource, admin: Admin, missing: list[Partition]) -> Offsets:
    if source.start == "latest":
        return admin.latest(missing)
    if isinstance(source.start, AtTime):
        return admin.offsets_at(source.start.timestamp, missing)
    earliest = admin.earliest(missing)
    if isinstance(source.start, AtOffsets):
        for topic, partition in missing:
            given = source.start.offsets.get(topic, {}).get(partition)
            if given is not None:
                earliest[topic, partition] = given
    return earliest


def _refuse_lost(known: Offsets, admin: Admin) -> None:
    earliest = admin.earliest(known)
    lost = {p: (at, earliest[p]) for p, at in known.items() if p in earliest and at < earliest[p]}
    if lost:
        (topic, partition), (at, first) = next(iter(lost.items()))
        raise TerminalError(
            f"{topic}-{partition}: the group stands at offset {at} and the oldest record is "
            f"{first}: {first - at} records were removed before they were read; "
            "to go on without them, reset the group's offsets to earliest"
        )


def require_topics(source: KafkaSource, admin: Admin) -> None:
    """Refuse a topic that does not exist, with the nearest one that does."""
    existing = {topic.name for topic in admin.topics()} if source.topics else set()
    for topic in source.topics:
        if topic not in existing:
            hint = nearest(topic, sorted(existing)) if existing else "the cluster has none"
            raise ConfigError(
                f"there is no topic {topic!r}; {hint}\nto make it: penstock topics create {topic}"
            )


def _wanted(source: KafkaSource) -> list[str] | re.Pattern[str]:
    return re.compile(source.pattern) if source.pattern is not None else source.topics


def _named(partitions: list[Partition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions)
