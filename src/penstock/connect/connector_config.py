"""The configuration of one connector: texts by key, read by the definition of its class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.connect.config_definition import Checked, Definition


@dataclass(frozen=True)
class ConnectorConfig:
    """A configuration with the definition that reads it.

    >>> from penstock.connect.common_keys import SINK
    >>> config = ConnectorConfig({"name": "a", "topics": "x, y", "tasks.max": "2"}, SINK)
    >>> config["tasks.max"], config["topics"], config["errors.tolerance"]
    (2, ['x', 'y'], 'none')
    """

    given: Mapping[str, str]
    definition: Definition

    @cached_property
    def checked(self) -> dict[str, Checked]:
        """Return every key of the definition with its value and its errors."""
        return {each.key.name: each for each in self.definition.checked(self.given)}

    @property
    def errors(self) -> list[str]:
        """Return every error, in the order of the keys."""
        return [error for each in self.checked.values() for error in each.errors]

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key: the given one, or its default."""
        return self.checked[key].value

    def get(self, key: str) -> str | None:
        """Return the text of a key as it was given."""
        return self.given.get(key)

    def below(self, prefix: str) -> dict[str, str]:
        """Return the keys with a prefix, without it.

        >>> ConnectorConfig({"a.b": "1", "c": "2"}, Definition()).below("a.")
        {'b': '1'}
        """
        return {k.removeprefix(prefix): v for k, v in self.given.items() if k.startswith(prefix)}
