"""The topics that are mirrored: which they are, and that the target has them as the source has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.config.logs import event_logger
from penstock.errors import ConfigError
from penstock.imports.mirror.circles import topics_filled_from
from penstock.imports.mirror.record_limits import Limits
from penstock.imports.mirror.topic_settings import SettingsCopier
from penstock.kafka import Admin
from penstock.kafka.kafka_errors import topic_missing
from penstock.pipeline.importing import POSITIONS

if TYPE_CHECKING:
    from penstock.imports.mirror.mirror_import import MirrorImport

log = event_logger(__name__)
_LONGEST = 249


@dataclass(frozen=True)
class MirroredTopic:
    """A topic of the source and its copy."""

    name: str
    partitions: int
    into: str
    into_id: str
    limits: Limits


class TopicFollower:
    """Lets the target have the topics of the source, with their partitions and settings."""

    def __init__(self, options: MirrorImport, source: Admin, target: Admin) -> None:
        self._options = options
        self._source = source
        self._target = target
        self.source_id = source.cluster().id
        self._target_id = target.cluster().id
        self._settings = SettingsCopier(source, target, options.exclude_configs)
        self.is_known = False
        self._reported: set[tuple[str, str]] = set()

    def follow(self) -> dict[str, MirroredTopic]:
        """Create what is missing in the target; return the topics by their names in the source."""
        partitions = {topic.name: topic.partitions for topic in self._source.topics()}
        copies = self._copies(self._chosen(partitions))
        wanted = self._settings.wanted(copies) if self._options.configs else {}
        self._ensure(
            {into: (partitions[name], wanted.get(name, {})) for name, into in copies.items()}
        )
        ids = self._target.topic_ids(copies.values())
        # One that was deleted this moment is missing: the next look creates it.
        copies = {name: into for name, into in copies.items() if into in ids}
        limits = self._settings.follow(
            {copies[name]: each for name, each in wanted.items() if name in copies}, copies.values()
        )
        self.is_known = True
        return {
            name: MirroredTopic(name, partitions[name], into, ids[into], limits[into])
            for name, into in copies.items()
            if into in limits
        }

    def _chosen(self, existing: Iterable[str]) -> list[str]:
        """Return the names of the topics that the options mean."""
        options = self._options
        if options.pattern is not None:
            out = [re.compile(each) for each in options.exclude]
            matching = [name for name in existing if re.fullmatch(options.pattern, name)]
            return [
                name
                for name in matching
                if name != POSITIONS and not any(each.fullmatch(name) for each in out)
            ]
        there = [*existing]
        missing = [name for name in options.topics if name not in there]
        if missing and not self.is_known:
            raise topic_missing(missing[0], there)
        for name in missing:
            self._report("topic_missing", name, "it does not exist in the source any more")
        return [name for name in options.topics if name in there]

    def _copies(self, chosen: list[str]) -> dict[str, str]:
        """Return the names of the copies, without topics that are copies themselves."""
        copies = {name: self._copy_of(name) for name in chosen}
        if self.source_id == self._target_id:
            same = [name for name, into in copies.items() if name == into]
            if same:
                raise ConfigError(
                    f"source and target are the same cluster, {self.source_id}, and the topic "
                    f"{same[0]!r} would be copied into itself; give another cluster, or another name, "
                    "as in copy.{topic}"
                )
            circular = dict.fromkeys(copies.values(), "it is a copy of this mirror")
        else:
            filled = topics_filled_from(self._target_id, self._source)
            circular = {
                topic: f"the mirror {mirror!r} fills it from the target, and its records would go in "
                f"circles; if that one is not used any more, run 'penstock offsets reset {mirror}' on "
                "the source cluster"
                for topic, mirror in filled.items()
            }
        return {n: into for n, into in copies.items() if self._may_copy(n, into, circular)}

    def _may_copy(self, name: str, into: str, circular: Mapping[str, str]) -> bool:
        reason = circular.get(name)
        if len(into) > _LONGEST or into in (".", "..", POSITIONS) or into.startswith("__"):
            reason = f"no topic can have the name of its copy, {into!r}"
        if reason is None:
            return True
        if self._options.pattern is None:
            raise ConfigError(f"the topic {name!r} cannot be mirrored: {reason}")
        self._report("topic_left_out", name, reason)
        return False

    def _copy_of(self, topic: str) -> str:
        return self._options.topic.format(topic=topic, cluster=self._options.alias)

    def _ensure(self, wanted: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Create topics and partitions that the target does not have."""
        there = {topic.name: topic.partitions for topic in self._target.topics(internal=True)}
        for into, (partitions, settings) in wanted.items():
            if into not in there:
                self._settings.create(into, partitions, settings)
                log.info("topic_created", topic=into, partitions=partitions)
            elif there[into] < partitions:
                self._target.add_partitions(into, partitions)
                log.info("partitions_added", topic=into, partitions=partitions)

    def _report(self, event: str, topic: str, reason: str) -> None:
        if (topic, reason) not in self._reported:
            self._reported.add((topic, reason))
            log.warning(event, topic=topic, reason=reason)
