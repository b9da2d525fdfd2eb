"""The offsets of groups, translated: where a consumer that moves to the target goes on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.errors import GroupInUseError, PenstockError, TransientError
from penstock.imports.mirror.committed_ends import CommittedEnds
from penstock.imports.mirror.sync_points import read_points, translated
from penstock.imports.positions import Known, Positions
from penstock.kafka import Admin, GroupOffsets
from penstock.kafka.handle import Partition
from penstock.kafka.offsets import CommittedOffset
from penstock.pipeline.importing import Position, key_of

if TYPE_CHECKING:
    from penstock.imports.mirror.mirror_import import MirrorImport
    from penstock.imports.mirror.topic_follower import MirroredTopic

log = event_logger(__name__)
_ANSWER = 10.0
# The text that is committed with an offset, followed by the mirror's name and the source's offset.
MARK = "penstock-mirror"


@dataclass(frozen=True)
class Copy:
    """A partition of the target, as it is when offsets are translated."""

    position: Position
    oldest: int
    end: int

    def offset_of(self, offset: int) -> int:
        """Return the target's offset for one of the source: never one after the record's."""
        if offset >= self.position["offset"]:
            # What the group has not read comes in transactions that begin after this end.
            return self.end
        found = translated(read_points(self.position.get("points")), offset)
        return max(self.oldest, self.oldest if found is None else found)


class GroupTranslation:
    """Commits translated offsets for groups that do not consume in the target."""

    def __init__(self, name: str, options: MirrorImport, target: Connection) -> None:
        self._name = name
        self._options = options
        self._target = target
        self._known = Known()
        self._closing = ExitStack()
        self._reported: set[tuple[str, str]] = set()

    def __enter__(self) -> GroupTranslation:
        enter = self._closing.enter_context
        self._source_admin = enter(Admin(self._options.cluster, timeout=_ANSWER))
        self._target_admin = enter(Admin(self._target, timeout=_ANSWER))
        self._positions = enter(Positions(self._target))
        # Up to the first transaction that is open.
        self._ends = enter(CommittedEnds(self._target))
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def translate(self, topics: Mapping[str, MirroredTopic]) -> None:
        """Commit the offsets of all groups in the target, where they are not the target's own."""
        groups = self._groups()
        copies = self._copies(topics) if groups else {}
        if not copies:
            return
        for group in groups:
            try:
                self._translate(group, topics, copies)
            except GroupInUseError:
                self._report(group, "it has members in the target")
            except TransientError:
                raise
            except PenstockError as error:
                self._report(group, str(error))

    def _groups(self) -> list[str]:
        pattern = self._options.group_pattern
        if pattern is None:
            return self._options.groups
        return [g.name for g in self._source_admin.groups() if re.fullmatch(pattern, g.name)]

    def _copies(self, topics: Mapping[str, MirroredTopic]) -> dict[Partition, Copy]:
        """Return what is known of each partition that was copied, by its name in the source."""
        cluster = self._source_admin.cluster().id
        ids = self._target_admin.topic_ids(topic.into for topic in topics.values())
        where = {
            (topic.name, number): (topic.into, number)
            for topic in topics.values()
            for number in range(topic.partitions)
            if topic.into in ids
        }
        if not where:
            return {}
        oldest, ends = self._ends.oldest(where.values()), self._ends.ends(where.values())
        # After the ends: a transaction that is before an end has its position in here.
        self._known = self._positions.read(self._name, self._known)
        copies = {}
        for (topic, number), into in where.items():
            place = {"cluster": cluster, "topic": topic, "partition": number}
            position = self._known.positions.get(key_of(place))
            if position and position.get("into_id") == ids[into[0]]:
                copies[topic, number] = Copy(position, oldest[into], ends[into])
        return copies

    def _translate(
        self, group: str, topics: Mapping[str, MirroredTopic], copies: Mapping[Partition, Copy]
    ) -> None:
        committed = self._source_admin.committed(group, copies)
        wanted = {
            (topics[topic].into, number): (offset, copies[topic, number].offset_of(offset))
            for (topic, number), offset in committed.items()
        }
        if not wanted:
            return
        with GroupOffsets(self._target, group, _ANSWER) as offsets:
            held = offsets.committed_with_metadata(wanted)
            changes = {
                where: (source, target)
                for where, (source, target) in wanted.items()
                if moves(held.get(where), source, target)
            }
            texts = {
                where: f"{MARK} {self._name} {source}" for where, (source, _) in changes.items()
            }
            offsets.commit({where: target for where, (_, target) in changes.items()}, texts)

    def _report(self, group: str, reason: str) -> None:
        if (group, reason) not in self._reported:
            self._reported.add((group, reason))
            log.warning("group_not_translated", mirror=self._name, group=group, reason=reason)


def moves(held: CommittedOffset | None, source: int, target: int) -> bool:
    """Return whether an offset in the target is replaced: forwards, or since the source's was reset.

    >>> moves(None, 10, 12), moves(CommittedOffset(12, "penstock-mirror m 10"), 20, 25)
    (True, True)
    >>> moves(CommittedOffset(12, ""), 20, 25)  # the group's own
    False
    >>> moves(CommittedOffset(12, "penstock-mirror m 10"), 10, 8)  # it was known better before
    False
    >>> moves(CommittedOffset(12, "penstock-mirror m 10"), 3, 4)  # the group was reset in the source
    True
    """
    if held is None:
        return True
    mark, _, rest = held.metadata.partition(" ")
    if mark != MARK:
        return False
    before = rest.rpartition(" ")[2]
    was_reset = before.isdigit() and source < int(before)
    return was_reset or target > held.offset
