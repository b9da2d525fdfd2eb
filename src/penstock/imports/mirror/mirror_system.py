"""Both clusters as the driver sees them: what is new in the source, and what follows from it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.errors import PenstockError, TransientError
from penstock.imports.mirror.committed_ends import CommittedEnds
from penstock.imports.mirror.group_translation import GroupTranslation
from penstock.imports.mirror.mirrored_partition import MirroredPartition
from penstock.imports.mirror.topic_follower import MirroredTopic, TopicFollower
from penstock.kafka import Admin
from penstock.kafka.handle import Partition
from penstock.pipeline.importing import Part, Position, System, key_of

if TYPE_CHECKING:
    from penstock.imports.mirror.mirror_import import MirrorImport

log = event_logger(__name__)
_ANSWER = 10.0


class MirrorSystem(System):
    """The source cluster, whose partitions are the parts, and the target, whose topics follow it."""

    def __init__(self, name: str, options: MirrorImport, target: Connection) -> None:
        self._name = name
        self._options = options
        self._connection = target
        self._closing = ExitStack()
        self._source = self._closing.enter_context(Admin(options.cluster, timeout=_ANSWER))
        self._target = self._closing.enter_context(Admin(target, timeout=_ANSWER))
        self._ends = self._closing.enter_context(CommittedEnds(options.cluster))
        self._groups = self._closing.enter_context(GroupTranslation(name, options, target))
        self._follower: TopicFollower | None = None
        self._followed_at = self._translated_at = -float("inf")
        self._topics: dict[str, MirroredTopic] = {}
        self._ids: dict[str, str] = {}
        self._recreated: set[str] = set()
        self._was_busy = False

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the partitions that have records after their positions."""
        follower = self._follow()
        where = [(t.name, p) for t in self._topics.values() for p in range(t.partitions)]
        ends = self._ends.ends(each for each in where if each[0] in self._ids)
        parts = {each: self._part(follower, each, 0) for each in ends}
        known = {each: self._known(part, positions) for each, part in parts.items()}
        firsts = self._ends.oldest(each for each, position in known.items() if position is None)
        pending: list[Part] = [
            self._part(follower, each, firsts.get(each, 0))
            for each, position in known.items()
            if ends[each] != (firsts[each] if position is None else position.get("offset"))
        ]
        self._translate(is_quiet=not pending)
        return pending

    def close(self) -> None:
        """Close the connections."""
        self._closing.close()

    def _follow(self) -> TopicFollower:
        """Look for topics, partitions and settings, if it is time or a topic was replaced."""
        follower = self._follower = self._follower or TopicFollower(
            self._options, self._source, self._target
        )
        before, self._ids = self._ids, self._source.topic_ids(self._topics)
        due = time.monotonic() - self._followed_at >= self._options.follow_every
        if due or before != self._ids:
            self._topics = self._followed(follower)
            self._ids = self._source.topic_ids(self._topics)
            self._followed_at = time.monotonic()
        return follower

    def _followed(self, follower: TopicFollower) -> dict[str, MirroredTopic]:
        try:
            return follower.follow()
        except PenstockError as error:
            # What was possible before will be again: a broker that has just started knows no topics.
            if follower.is_known:
                raise TransientError(str(error)) from error
            raise

    def _part(self, follower: TopicFollower, where: Partition, first: int) -> MirroredPartition:
        topic = self._topics[where[0]]
        return MirroredPartition(
            source=self._options.cluster,
            target=self._connection,
            cluster_id=follower.source_id,
            alias=self._options.alias,
            topic=topic.name,
            partition=where[1],
            topic_id=self._ids[topic.name],
            into=topic.into,
            into_id=topic.into_id,
            first=first,
            limits=topic.limits,
            skips_lost=self._options.on_data_loss == "skip",
        )

    def _known(self, part: MirroredPartition, positions: Mapping[str, Position]) -> Position | None:
        """Return the position in a partition; None where there is none, or its topic was replaced."""
        position = positions.get(key_of(part.place))
        if position is None:
            return None
        if part.is_same(position):
            self._note_new_copy(part, position)
            return position
        if part.topic_id not in self._recreated:
            self._recreated.add(part.topic_id)
            log.warning("topic_recreated", mirror=self._name, topic=part.topic)
        return None

    def _note_new_copy(self, part: MirroredPartition, position: Position) -> None:
        """Report a copy that lacks what was copied before: it was deleted, or has another name."""
        if position.get("into_id", part.into_id) == part.into_id or part.into_id in self._recreated:
            return
        self._recreated.add(part.into_id)
        log.warning(
            "copy_is_new",
            mirror=self._name,
            topic=part.into,
            reason="it gets new records only; 'penstock offsets reset' for this mirror copies all again",
        )

    def _translate(self, *, is_quiet: bool) -> None:
        """Translate the offsets of groups, if it is time, or all has just been copied."""
        due = time.monotonic() - self._translated_at >= self._options.groups_every
        if due or (is_quiet and self._was_busy):
            self._groups.translate(self._topics)
            self._translated_at = time.monotonic()
        self._was_busy = not is_quiet
