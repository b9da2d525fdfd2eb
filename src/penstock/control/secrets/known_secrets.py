"""The secrets of the previous text of a definition, and which of them a masked value stands for.

In mappings it is the one of the same place. In a list places change, and all secrets look alike: there a
mask stands for a secret of the element that has the same other values, wherever that was in the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from penstock.config.secrets import MASK
from penstock.control.secrets.yaml_scalars import Document, Path, Scalar, children_of

# An element of more values than that, which takes aliases, is like no other.
_MOST = 20_000
_DEEPEST = 100


@dataclass(frozen=True)
class KnownSecret:
    """A secret of the previous text: as it is stored, what it is, and what people see of it."""

    sealed: str
    value: Any
    shown: str


@dataclass(frozen=True)
class _Leaf:
    """A value in an element of a list, and the secret that it is."""

    value: Any
    secret: KnownSecret | None = None

    def becomes(self, given: _Leaf) -> bool:
        """Return whether a given value is this one, or another one of a secret that is all masked."""
        if self.secret is None:
            return repr(self.value) == repr(given.value)
        shown, value = self.secret.shown, self.secret.value
        return shown == MASK or given.value in (shown, value)


_Element = dict[Path, _Leaf]


def is_in_list(path: Path) -> bool:
    """Return whether a path leads through a list.

    >>> is_in_list(("steps", 0, "password")), is_in_list(("connection", "sasl.password"))
    (True, False)
    """
    return _split(path) is not None


class KnownSecrets:
    """Finds the secrets of the previous text for the values of the given one."""

    def __init__(
        self, before: Document | None, secrets: Mapping[Path, KnownSecret], given: Document
    ) -> None:
        self._before = before.root if before else None
        self._given = given.root
        self._secrets = secrets
        scalars = before.scalars if before else []
        self._by_node = {id(e.node): secrets[e.path] for e in scalars if e.path in secrets}
        # By the list's path: its elements that have secrets, by their places.
        self._lists: dict[Path, dict[int, _Element | None]] = {}
        for path in secrets:
            if (split := _split(path)) and split[1] not in self._lists.get(split[0], {}):
                element = self._element(self._before, (*split[0], split[1]))
                self._lists.setdefault(split[0], {})[split[1]] = element
        self._matches: dict[Path, list[int]] = {}

    def find(self, path: Path) -> KnownSecret | None:
        """Return the secret that a masked value stands for; None where it is not sure."""
        if (split := _split(path)) is None:
            return self._secrets.get(path)
        start, place, rest = split
        places = self._places(start, place)
        found = [
            secret
            for each in sorted(places, key=lambda other: other != place)
            if (secret := self._secrets.get((*start, each, *rest)))
        ]
        if len({repr(secret.value) for secret in found}) > 1 and not self._is_as_before(start):
            return None
        return found[0] if found else None

    def _places(self, start: Path, place: int) -> list[int]:
        """Return where elements of the previous list were that an element of the given one may be."""
        if start not in self._lists:
            return []
        if (path := (*start, place)) not in self._matches:
            given = self._element(self._given, path)
            elements = self._lists[start].items()
            self._matches[path] = [each for each, old in elements if _is_same(old, given)]
        return self._matches[path]

    def _is_as_before(self, start: Path) -> bool:
        """Return whether a list has as many elements as before, and each one with secrets its place."""
        before, given = _at(self._before, start), _at(self._given, start)
        if before is None or given is None or len(before.value) != len(given.value):
            return False
        return all(place in self._places(start, place) for place in self._lists[start])

    def _element(self, root: yaml.Node | None, path: Path) -> _Element | None:
        """Return the values of an element, also those of its aliases; None where there are too many."""
        found: _Element = {}
        waiting: list[tuple[Path, yaml.Node | None]] = [((), _at(root, path))]
        for _ in range(_MOST):
            if not waiting:
                return found
            at, node = waiting.pop()
            if node is None or len(at) > _DEEPEST:
                return None
            if isinstance(node, yaml.ScalarNode):
                found[at] = _Leaf(Scalar(at, node).value(), self._by_node.get(id(node)))
            elif not node.value:
                found[at] = _Leaf(node.value)
            waiting += [((*at, key), child) for key, child in children_of(node)]
        return None


def _is_same(old: _Element | None, given: _Element | None) -> bool:
    if old is None or given is None or old.keys() != given.keys():
        return False
    return all(leaf.becomes(given[path]) for path, leaf in old.items())


def _split(path: Path) -> tuple[Path, int, Path] | None:
    """Return the path of the outermost list, the place in it, and the rest; None without a list."""
    for at, part in enumerate(path):
        if isinstance(part, int):
            return path[:at], part, path[at + 1 :]
    return None


def _at(root: yaml.Node | None, path: Path) -> yaml.Node | None:
    node = root
    for part in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part] if part < len(node.value) else None
        else:
            node = None if node is None else dict(children_of(node)).get(part)
    return node
