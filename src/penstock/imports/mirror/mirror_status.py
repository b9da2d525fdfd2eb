"""How far a mirror is: the lag of each partition, and the offsets of groups in both clusters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.imports.mirror.committed_ends import CommittedEnds
from penstock.imports.mirror.group_translation import MARK
from penstock.imports.position_editing import read_positions
from penstock.kafka import Admin, GroupOffsets
from penstock.kafka.handle import Partition
from penstock.pipeline.importing import Position

_ANSWER = 10.0


@dataclass(frozen=True)
class PartitionStatus:
    """A partition, its copy, and how many offsets of the source are not copied yet."""

    topic: str
    partition: int
    into: str
    offset: int
    end: int | None

    @property
    def lag(self) -> int | None:
        """Return how many offsets are to be copied; None where the source does not have the topic."""
        return None if self.end is None else max(0, self.end - self.offset)


@dataclass(frozen=True)
class GroupStatus:
    """An offset of a group that was translated."""

    group: str
    topic: str
    partition: int
    source: int
    target: int
    # How many offsets of the target the group would have to read.
    lag: int


@dataclass(frozen=True)
class MirrorStatus:
    """A mirror as a whole."""

    name: str
    partitions: list[PartitionStatus]
    groups: list[GroupStatus]


def mirror_status(name: str, source: Connection, target: Connection) -> MirrorStatus:
    """Return how far a mirror is."""
    with Admin(source) as from_admin, Admin(target) as to_admin:
        cluster = from_admin.cluster().id
        copied = dict(_copied(name, cluster, target))
        if not copied:
            raise ConfigError(
                f"there is no mirror {name!r} from {source.brokers} (cluster {cluster}) in "
                f"{target.brokers}, or it has copied nothing yet; 'penstock offsets list {name}' shows "
                "its positions"
            )
        with CommittedEnds(source) as ends:
            latest = ends.ends(from_admin.existing(copied))
        partitions = [
            PartitionStatus(*where, position["into"], position["offset"], latest.get(where))
            for where, position in sorted(copied.items())
        ]
        return MirrorStatus(name, partitions, [*_groups(name, to_admin, partitions)])


def _copied(name: str, cluster: str, target: Connection) -> Iterator[tuple[Partition, Position]]:
    for key, position in read_positions(target, name).items():
        place = msgspec.json.decode(key)
        if place.get("cluster") == cluster and "into" in position:
            yield (place["topic"], place["partition"]), position


def _groups(name: str, target: Admin, partitions: list[PartitionStatus]) -> Iterator[GroupStatus]:
    into = target.existing({(each.into, each.partition) for each in partitions})
    ends = target.latest(into)
    for group in target.groups():
        with GroupOffsets(target.connection, group.name, _ANSWER) as offsets:
            committed = offsets.committed_with_metadata(into)
        for (topic, number), held in sorted(committed.items()):
            mark, _, rest = held.metadata.partition(" ")
            mirror, _, source = rest.rpartition(" ")
            if mark == MARK and mirror == name and source.isdigit():
                lag = max(0, ends[topic, number] - held.offset)
                yield GroupStatus(group.name, topic, number, int(source), held.offset, lag)
