"""What a configuration can name next to connectors: transforms, predicates and converters."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.connect.common_keys import VERSION
from penstock.connect.config_definition import Key
from penstock.connect.converters import CONVERTERS, Converter
from penstock.connect.transforms.plugins import (
    PREDICATES,
    TRANSFORMS,
    find_predicate,
    find_transform,
)


def other_plugins() -> list[dict[str, str]]:
    """Return these classes as `GET /connector-plugins?connectorsOnly=false` lists them.

    >>> {each["type"] for each in other_plugins()} == {
    ...     "transformation", "predicate", "converter", "header_converter"}
    True
    """
    return [
        {"class": name, "type": kind, "version": VERSION} for kind, name in sorted({*_listed()})
    ]


def other_keys(name: str) -> tuple[Key, ...] | None:
    """Return the keys of a class, None if it is none of these.

    >>> [key.name for key in other_keys("RegexRouter")]
    ['regex', 'replacement']
    """
    plugin = find_transform(name) or find_predicate(name)
    if plugin is not None:
        return plugin.definition.keys
    converter = _converter(name)
    return None if converter is None else converter.definition.keys


def _listed() -> Iterator[tuple[str, str]]:
    yield from (("transformation", plugin.class_name) for plugin in TRANSFORMS)
    yield from (("predicate", plugin.class_name) for plugin in PREDICATES)
    for converter in CONVERTERS:
        if {"key", "value"} & {*converter.uses}:
            yield "converter", converter.name
        if "header" in converter.uses:
            yield "header_converter", converter.name


def _converter(name: str) -> Converter | None:
    return next((each for each in CONVERTERS if name in each.names), None)
