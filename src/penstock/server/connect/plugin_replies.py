"""The classes that there are: lists, their keys, and the check of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.connect.common_keys import CONNECTOR_CLASS
from penstock.connect.connector_class import Catalog, UnknownClassError, short_names
from penstock.connect.converters import WORKER_CONVERTERS
from penstock.connect.plugin_list import other_keys, other_plugins
from penstock.connect.validation import validate
from penstock.server.connect.connect_errors import ConnectError


def plugins(catalog: Catalog) -> list[dict[str, str]]:
    """Return all classes of connectors, by name."""
    found = [
        {"class": name, "type": each.kind, "version": each.version}
        for each in catalog.classes
        for name in each.names
    ]
    return sorted(found, key=lambda each: (each["type"], each["class"]))


def all_plugins(catalog: Catalog) -> list[dict[str, str]]:
    """Return all classes of connectors, and what else a configuration can name."""
    found = [*plugins(catalog), *other_plugins()]
    return sorted(found, key=lambda each: (each["type"], each["class"]))


def keys(catalog: Catalog, plugin: str) -> list[dict[str, Any]]:
    """Return the definitions of a class: its own keys, then the common ones."""
    if (other := other_keys(plugin)) is not None:
        return [key.described() for key in other]
    try:
        kind = catalog.find(plugin)
    except UnknownClassError:
        raise ConnectError(404, f"Unknown plugin {plugin}.") from None
    own = {key.name for key in kind.keys}
    common = [key for key in kind.definition().keys if key.name not in own]
    return [key.described() for key in (*kind.keys, *common)]


def validated(
    catalog: Catalog,
    plugin: str,
    body: Any,
    worker: Mapping[str, str] = WORKER_CONVERTERS,
    *,
    with_warnings: bool = False,
) -> dict[str, Any]:
    """Return every key of a configuration with its value and its errors.

    `worker` has the converters of the workers; their keys are not listed.
    With warnings the reply has a member that Connect's does not have: keys without effect.
    """
    if not isinstance(body, dict):
        raise ConnectError(400, "the body is not a JSON object")
    given = {key: _text(value) for key, value in body.items() if value is not None}
    named = given.get(CONNECTOR_CLASS)
    if named is not None and not _same(named, plugin):
        raise ConnectError(
            400, f"Included connector type {named} does not match request type {plugin}"
        )
    try:
        config = {CONNECTOR_CLASS: plugin, **given}
        found = validate(catalog, config, {**WORKER_CONVERTERS, **worker})
    except UnknownClassError as error:
        raise ConnectError(400, str(error)) from None
    warnings = {"warnings": [{"name": key, "text": text} for key, text in found.warnings]}
    return {**found.described(), **(warnings if with_warnings else {})}


def _same(one: str, other: str) -> bool:
    """Return whether two names, full or short, can be those of one class."""
    return one in short_names(other) or other in short_names(one)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
