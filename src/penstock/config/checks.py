"""Reads a whole configuration and finds everything that is wrong in it at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.config.keys import Key, Value, find_key, near_key, unknown_key

TOPIC_CONFIG = "default.topic.config"
# confluent-kafka takes these beside the keys; they belong to one client, not to a connection.
CALLBACKS = frozenset(
    {"error_cb", "stats_cb", "throttle_cb", "oauth_cb", "on_commit", "on_delivery", "logger"}
)


@dataclass
class Checked:
    """Values under the names that Penstock uses, and what was wrong on the way there."""

    values: dict[str, Value] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)

    def lacks(self, *names: str) -> bool:
        """Tell whether none of these keys was given; one that was given wrongly counts as given."""
        return not any(name in self.values or name in self.tried for name in names)

    def given(self, *names: str) -> list[str]:
        """List which of these keys have a value."""
        return [name for name in names if name in self.values]


def read_keys(items: Iterable[tuple[str, Any]]) -> Checked:
    """Read every key of a configuration alone; topic keys are lifted out of their nested mapping.

    >>> read_keys([("client.id", "a"), ("default.topic.config", {"acks": "1"})]).values
    {'client.id': 'a', 'acks': 1}
    >>> read_keys([("client.idd", "a")]).problems
    ["unknown key 'client.idd': did you mean 'client.id'?"]
    """
    found = Checked()
    for name, value in items:
        if name == TOPIC_CONFIG:
            _take_topic_config(found, value)
        else:
            _take(found, name, value)
    return found


def _take(found: Checked, name: Any, value: Any) -> None:
    if name in CALLBACKS:
        found.problems.append(f"{name}: a callback is given to the producer or consumer, not here")
    elif key := find_key(name):
        _take_value(found, key, name, value)
    else:
        found.problems.append(unknown_key(name))
        if near := near_key(name):
            found.tried.add(near.name)


def _take_value(found: Checked, key: Key, name: str, value: Any) -> None:
    found.tried.add(key.name)
    try:
        taken = key.read(value)
    except ValueError as error:
        found.problems.append(f"{name}: {error}")
        return
    if found.values.setdefault(key.name, taken) != taken:
        names = ", ".join([key.name, *key.aliases])
        found.problems.append(f"{name}: given twice with different values (names of it: {names})")


def _take_topic_config(found: Checked, nested: Any) -> None:
    if not isinstance(nested, Mapping):
        found.problems.append(f"{TOPIC_CONFIG}: {type(nested).__name__} given; allowed: a mapping")
        return
    for name, value in nested.items():
        key = find_key(name)
        if key and not key.topic and key.name != "compression.type":
            found.problems.append(f"{TOPIC_CONFIG}: {name} is not a topic key; write it outside")
        else:
            _take(found, name, value)
