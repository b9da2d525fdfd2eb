"""Decides where a pipeline starts: at its checkpoint, at the group's offsets, or at `start`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.config.logs import event_logger
from penstock.engine import present
from penstock.engine.checkpoint import Checkpoint, Epoch, Planned
from penstock.engine.losses import Loss, below, refusal_of
from penstock.errors import ConfigError
from penstock.kafka import Admin, GroupOffsets
from penstock.pipeline import Delivery, Offsets, Partition, Pipeline
from penstock.sources.kafka import AtOffsets, AtTime, KafkaSource

log = event_logger(__name__)


@dataclass(frozen=True)
class Found:
    """The epoch to run, where its group stands, and what was lost while the pipeline stood still."""

    epoch: Epoch
    committed: Offsets
    lost: list[Loss] = field(default_factory=list)


def find_epoch(
    checkpoint: Checkpoint,
    pipeline: Pipeline,
    sources: Sequence[KafkaSource],
    admin: Admin,
    group: GroupOffsets,
) -> Found:
    """Return the epoch to go on with, or begin a new one and commit its start to the group."""
    epoch = checkpoint.newest()
    read = [(source, _partitions(source, admin, epoch)) for source in sources]
    partitions = [place for _, places in read for place in places]
    topics = admin.topic_ids({topic for topic, _ in partitions})
    place = Place(partitions, topics, epoch)
    committed = place.of_now(group.committed(partitions))
    last = place.last()
    stays = last is not None and goes_on(
        committed, place.before(), last, pipeline.delivery, follows=pipeline.in_real_time
    )
    if epoch and last and stays and not (last.done and place.made_again()):
        stood = place.of_now((last.end if last.done else place.before()) | committed)
        for source in sources:
            _refuse_lost(source.own(stood), admin, pipeline, source)
        return Found(epoch, committed)
    known = _known(place, last if stays else None, committed, admin)
    start: Offsets = {}
    lost: list[Loss] = []
    for source, places in read:
        begin, gone = starting_offsets(pipeline, source, admin, places, known)
        start, lost = start | begin, lost + gone
    began = checkpoint.new(start, topics)
    if pipeline.commit:
        present.commit(group, admin, start)
    log.info("epoch_began", epoch=began.number, moved=last is not None)
    return Found(began, start, lost)


class Place:
    """Where the newest epoch stands, in the topics that are still the ones it read."""

    def __init__(
        self, partitions: list[Partition], topics: Mapping[str, str], epoch: Epoch | None
    ) -> None:
        self.partitions = partitions
        self._topics = topics
        self._epoch = epoch
        self._noted = epoch.topics() if epoch else {}
        self._newest = epoch.last() if epoch else None

    def of_now(self, offsets: Mapping[Partition, int]) -> Offsets:
        """Return the offsets that mean something: not those of a topic that was made again since."""
        return {p: offset for p, offset in offsets.items() if self._is_the_same(p[0])}

    def last(self) -> Planned | None:
        """Return the newest batch, as far as its topics are there."""
        return replace(self._newest, end=self.of_now(self._newest.end)) if self._newest else None

    def before(self) -> Offsets:
        """Return where the newest batch begins."""
        if not (self._epoch and self._newest):
            return {}
        return self.of_now(self._epoch.begin_of(self._newest.id))

    def made_again(self) -> list[Partition]:
        """Return the partitions of topics that are not the ones that the newest batch read."""
        read = {topic for topic, _ in self._newest.end} if self._newest else set()
        return [p for p in self.partitions if p[0] in read and not self._is_the_same(p[0])]

    def start(self) -> Offsets:
        """Return where the epoch started."""
        return self.of_now(self._epoch.start()) if self._epoch else {}

    def _is_the_same(self, topic: str) -> bool:
        now = self._topics.get(topic)
        return now is not None and self._noted.get(topic, now) == now


def _known(place: Place, last: Planned | None, committed: Offsets, admin: Admin) -> Offsets:
    """Return where to begin as far as that is known; the rest is up to `start`.

    A topic that was made again is read from its beginning. `last` is the batch at whose end the epoch
    stands, None where somebody moved the group.
    """
    anew = place.made_again()
    if last is None:
        return (
            (place.start() if place.last() is None else {})
            | committed
            | present.oldest(admin, anew)
        )
    others = [p for p in place.partitions if p not in last.end]
    return last.end | present.oldest(admin, others)


def _partitions(source: KafkaSource, admin: Admin, epoch: Epoch | None) -> list[Partition]:
    if epoch is None or source.pattern is not None or source.on_data_loss == "fail":
        return admin.partitions(_wanted(source))
    return admin.partitions(re.compile("|".join(map(re.escape, source.topics))))


def goes_on(
    committed: Mapping[Partition, int],
    before: Offsets,
    last: Planned,
    delivery: Delivery,
    *,
    follows: bool = False,
) -> bool:
    """Say whether the group stands where this pipeline left it.

    A batch that is done has committed its end. One that was under way has committed nothing yet or,
    if it was killed at the very end, its end. Offsets that expired say nothing: the checkpoint holds.
    In real-time mode the group `follows` what is done, so that it may not have got there.
    """
    at_end = _stands_at(committed, last.end)
    if last.done and (at_end or not follows):
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
    pipeline: Pipeline,
    source: KafkaSource,
    admin: Admin,
    partitions: list[Partition],
    known: Mapping[Partition, int],
) -> tuple[Offsets, list[Loss]]:
    """Return an explicit offset for every partition, the known one, else by `start`; and what is lost."""
    missing = [partition for partition in partitions if partition not in known]
    if source.start == "committed" and missing:
        raise ConfigError(
            f"start is 'committed', and the group has no offset for {_named(missing)}; "
            "commit one, or start at earliest, latest, a timestamp or explicit offsets"
        )
    chosen = {partition: known[partition] for partition in partitions if partition in known}
    lost = _refuse_lost(chosen, admin, pipeline, source)
    oldest = {loss.partition: loss.oldest for loss in lost if loss.oldest is not None}
    return chosen | oldest | _by_start(source, admin, missing), lost


def _by_start(source: KafkaSource, admin: Admin, missing: list[Partition]) -> Offsets:
    if source.start == "latest":
        return admin.latest(missing)
    if isinstance(source.start, AtTime):
        return admin.offsets_at(source.start.timestamp, missing)
    earliest = present.oldest(admin, missing)
    if isinstance(source.start, AtOffsets):
        for topic, partition in missing:
            given = source.start.offsets.get(topic, {}).get(partition)
            if given is not None:
                earliest[topic, partition] = given
    return earliest


def _refuse_lost(
    stood: Offsets, admin: Admin, pipeline: Pipeline, source: KafkaSource
) -> list[Loss]:
    """Return what was removed while the pipeline stood still; refuse where it may not be skipped."""
    lost = below(stood, present.oldest(admin, stood))
    if lost and source.on_data_loss == "fail":
        raise refusal_of(lost, pipeline.group_id)
    return lost


def _wanted(source: KafkaSource) -> list[str] | re.Pattern[str]:
    return re.compile(source.pattern) if source.pattern is not None else source.topics


def _named(partitions: list[Partition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions)
