"""Parsing of a whole configuration, with all problems reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.config.keys import Key, Value, find_key, near_key, unknown_key

TOPIC_CONFIG = "default.topic.config"
# confluent-kafka accepts these in addition to the keys; they belong to one client, not to a connection.
CALLBACKS = frozenset(
    {"error_cb", "stats_cb", "throttle_cb", "oauth_cb", "on_commit", "on_delivery", "logger"}
)


@dataclass
class Checked:
    """Values under Penstock's names, and the problems that were found."""

    values: dict[str, Value] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)

    def lacks(self, *names: str) -> bool:
        """Return whether none of these keys was given; an invalid value counts as given."""
        return not any(name in self.values or name in self.tried for name in names)

    def given(self, *names: str) -> list[str]:
        """List which of these keys have a value."""
        return [name for name in names if name in self.values]


def read_keys(items: Iterable[tuple[str, Any]]) -> Checked:
    """Read every key of a configuration on its own; topic keys are moved out of their nested mapping.

    >>> read_keys([("client.id", "a"), ("default.topic.config", {"acks": "1"})]).values
    {'client.id': 'a', 'acks': 1}
    >>> read_keys([("client.idd", "a")]).problems
    ["unknown key 'client.idd': did you mean 'client.id'?"]
    """
    checked = Checked()
    for name, value in items:
        if name == TOPIC_CONFIG:
            _take_topic_config(checked, value)
        else:
            _take(checked, name, value)
    return checked


def _take(checked: Checked, name: Any, value: Any) -> None:
    if name in CALLBACKS:
        checked.problems.append(
            f"{name}: a callback is given to the producer or consumer, not here"
        )
    elif key := find_key(name):
        _take_value(checked, key, name, value)
    else:
        checked.problems.append(unknown_key(name))
        if near := near_key(name):
            checked.tried.add(near.name)


def _take_value(checked: Checked, key: Key, name: str, value: Any) -> None:
    checked.tried.add(key.name)
    try:
        taken = key.read(value)
    except ValueError as error:
        checked.problems.append(f"{name}: {error}")
        return
    if checked.values.setdefault(key.name, taken) != taken:
        names = ", ".join([key.name, *key.aliases])
        checked.problems.append(f"{name}: given twice with different values (names of it: {names})")


def _take_topic_config(checked: Checked, nested: Any) -> None:
    if not isinstance(nested, Mapping):
        checked.problems.append(
            f"{TOPIC_CONFIG}: {type(nested).__name__} given; allowed: a mapping"
        )
        return
    for name, value in nested.items():
        key = find_key(name)
        if key and not key.topic and key.name != "compression.type":
            checked.problems.append(f"{TOPIC_CONFIG}: {name} is not a topic key; write it outside")
        else:
            _take(checked, name, value)
