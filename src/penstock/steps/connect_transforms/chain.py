"""A configured chain of transforms, as plain values: what `binding.bind` compiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PredicateSpec:
    """A predicate: its name in the configuration, its class without the package, its options."""

    name: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TransformSpec:
    """A transform: its name, its class without package and part, the part (key, value or None).

    `options` has the parsed values by their keys. With a `predicate` the transform is applied to the
    records for which the predicate holds; with `negate`, to all others.
    """

    name: str
    kind: str
    part: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    predicate: PredicateSpec | None = None
    negate: bool = False
