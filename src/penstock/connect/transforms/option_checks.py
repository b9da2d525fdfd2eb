"""Checks of options that only transforms and predicates have, with Kafka's texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.connect.config_definition import Check, ConfigError

CAST_TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
_OTHER_TYPES = ("array", "map", "struct", "bytes")
WHOLE_VALUE = ""
"""The name under which `cast_types` has the type of the whole key or value."""


class OptionError(ConfigError):
    """An option that cannot be used; the text is Kafka's, as a whole."""

    def __init__(self, text: str) -> None:
        ValueError.__init__(self, text)


def cast_types(spec: Iterable[str]) -> dict[str, str]:
    """Return the type of each field of a `spec`; of the whole value under the empty name.

    >>> cast_types(["id:int64", "name:STRING"])
    {'id': 'int64', 'name': 'string'}
    >>> cast_types(["float32"])
    {'': 'float32'}
    """
    items = [*spec]
    types: dict[str, str] = {}
    for item in items:
        parts = _parts(item)
        if len(parts) > 2:
            raise OptionError(
                f"Invalid value [{', '.join(items)}] for configuration renames: "
                f"Invalid rename mapping: {item}"
            )
        name = parts[0].strip() if len(parts) == 2 else WHOLE_VALUE
        types[name] = _cast_type(parts[-1].strip())
    if WHOLE_VALUE in types and len(items) > 1:
        raise OptionError(
            "Cast transformations that specify a type to cast the entire value to may only specify a "
            "single cast in their spec"
        )
    return types


def _cast_type(given: str) -> str:
    lower = given.lower()
    if lower in CAST_TYPES:
        return lower
    if lower in _OTHER_TYPES:
        known = ", ".join(name.upper() for name in CAST_TYPES)
        raise OptionError(
            f"Cast transformation does not support casting to {given.upper()}; "
            f"supported types are [{known}]"
        )
    raise OptionError(
        "Invalid value java.lang.IllegalArgumentException: No enum constant "
        f"org.apache.kafka.connect.data.Schema.Type.{given.upper()} for configuration "
        f"Invalid type found in casting spec: {given}"
    )


def rename_mappings(pairs: Iterable[str]) -> dict[str, str]:
    """Return the new names by the old ones.

    >>> rename_mappings(["foo:bar"])
    {'foo': 'bar'}
    """
    items = [*pairs]
    renames: dict[str, str] = {}
    for item in items:
        parts = _parts(item)
        if len(parts) != 2:
            raise OptionError(
                f"Invalid value [{', '.join(items)}] for configuration renames: "
                f"Invalid rename mapping: {item}"
            )
        renames[parts[0]] = parts[1]
    return renames


def _parts(item: str) -> list[str]:
    """Split at colons; as in Java, empty parts at the end do not count."""
    parts = item.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def filled_list(name: str) -> Check:
    """Refuse a list without elements, or with one of them twice; `name` is that of the key."""

    def check(value: Any) -> str | None:
        if not value:
            text = "must not be empty. Valid values include: any non-empty value"
            raise OptionError(f"Configuration '{name}' {text}")
        return distinct(name)(value)

    return check


def distinct(name: str) -> Check:
    """Refuse a list that has an element twice; `name` is that of the key."""

    def check(value: Any) -> str | None:
        if value and len({*value}) < len(value):
            raise OptionError(f"Configuration '{name}' values must not be duplicated.")
        return None

    return check


def filled(value: Any) -> str | None:
    """Refuse an empty text."""
    return "String must be non-empty" if value == "" else None


def not_null(value: Any) -> str | None:
    """Refuse a missing value."""
    return "entry must be non null" if value is None else None


def cast_spec(value: Any) -> str | None:
    """Refuse a `spec` without fields, or with types that do not exist."""
    if not value:
        raise OptionError("Must specify at least one field to cast.")
    cast_types(value)
    return None


def renames(value: Any) -> str | None:
    """Refuse names that are not pairs."""
    rename_mappings(value)
    return None
