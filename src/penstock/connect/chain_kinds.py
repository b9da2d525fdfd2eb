"""What the transforms of a chain read and make."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.steps.connect_transforms.chain import TransformSpec

_OF_NO_VALUE = ("RegexRouter", "TimestampRouter", "Filter", "InsertHeader", "DropHeaders")
_OF_HEADERS = ("DropHeaders", "HeaderFrom", "InsertHeader")
_MAKING_HEADERS = ("HeaderFrom", "InsertHeader")


def reads_values(chain: Sequence[TransformSpec]) -> bool:
    """Return whether a chain reads or changes what is in keys or values.

    >>> reads_values([TransformSpec("r", "RegexRouter"), TransformSpec("m", "MaskField", "value")])
    True
    """
    return any(spec.kind not in _OF_NO_VALUE for spec in chain)


def makes_keys(chain: Sequence[TransformSpec]) -> bool:
    """Return whether a chain changes keys."""
    return any(spec.part == "key" or spec.kind == "ValueToKey" for spec in chain)


def reads_headers(chain: Sequence[TransformSpec]) -> bool:
    """Return whether a chain needs the headers of records."""
    predicates = (spec.predicate for spec in chain if spec.predicate)
    asked = any(each.kind == "HasHeaderKey" for each in predicates)
    return asked or any(spec.kind in _OF_HEADERS for spec in chain)


def makes_headers(chain: Sequence[TransformSpec]) -> list[str]:
    """Return the names of the transforms that make headers."""
    return [spec.name for spec in chain if spec.kind in _MAKING_HEADERS]
