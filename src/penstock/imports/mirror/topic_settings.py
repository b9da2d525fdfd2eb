"""The settings of topics, copied: what is set for a topic in the source is set for its copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from penstock.config.logs import event_logger
from penstock.errors import PenstockError, TransientError
from penstock.imports.mirror.record_limits import Limits
from penstock.kafka import Admin
from penstock.kafka.admin.admin_model import Setting

log = event_logger(__name__)


class SettingsCopier:
    """Copies settings, except those that are about their own cluster or that the target refuses."""

    def __init__(self, source: Admin, target: Admin, excluded: Collection[str]) -> None:
        self._source = source
        self._target = target
        self._excluded = frozenset(excluded)
        # What the target refused: (topic, setting, value), reported once and not tried again.
        self._refused: set[tuple[str, str, str | None]] = set()

    def wanted(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return what is set for topics of the source."""
        every = self._source.settings_of(topics)
        return {name: self._own(settings) for name, settings in every.items()}

    def create(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Create a topic with as many of the settings as the target takes."""
        try:
            self._target.create_topic(topic, partitions, config=settings)
        except TransientError:
            raise
        except PenstockError:
            # Either is reported once more, by what follows, if it was not for the settings.
            if topic not in self._target.topic_ids([topic]):
                self._target.create_topic(topic, partitions)

    def follow(
        self, wanted: Mapping[str, Mapping[str, str]], topics: Iterable[str]
    ) -> dict[str, Limits]:
        """Set what differs in the copies; return what each of the topics takes."""
        limits = {}
        for topic, settings in self._target.settings_of(topics).items():
            holds = {each.name: each.value or "" for each in settings}
            if topic in wanted and self._set(topic, wanted[topic], self._own(settings)):
                holds |= wanted[topic]
            limits[topic] = Limits.of(holds)
        return limits

    def _set(self, topic: str, wanted: Mapping[str, str], held: Mapping[str, str]) -> bool:
        """Change settings where they differ; return whether the target has them all now."""
        changes: dict[str, str | None] = dict.fromkeys(held.keys() - wanted.keys())
        changes |= {name: value for name, value in wanted.items() if held.get(name) != value}
        new = {n: v for n, v in changes.items() if (topic, n, v) not in self._refused}
        if not new:
            return not changes
        try:
            self._target.alter_topic(topic, new)
        except TransientError:
            raise
        except PenstockError:
            return self._set_each(topic, new)
        log.info("settings_changed", topic=topic, settings=sorted(new))
        return len(new) == len(changes)

    def _set_each(self, topic: str, changes: Mapping[str, str | None]) -> bool:
        """Change settings one by one: which of them the target refuses is not said otherwise."""
        done = True
        for name, value in changes.items():
            try:
                self._target.alter_topic(topic, {name: value})
            except TransientError:
                raise
            except PenstockError as error:
                done = False
                self._refused.add((topic, name, value))
                log.warning("setting_not_copied", topic=topic, setting=name, reason=str(error))
        return done

    def _own(self, settings: Iterable[Setting]) -> dict[str, str]:
        return {
            each.name: each.value
            for each in settings
            if each.own and each.value is not None and each.name not in self._excluded
        }
