"""From a connector's configuration to the chain of its transforms, with every error that it has."""

from __future__ import annotations

import re
from typing import Any

from penstock import errors
from penstock.connect.common_keys import PREDICATES, TRANSFORMS
from penstock.connect.transforms.option_checks import cast_types, rename_mappings
from penstock.connect.transforms.plugin_keys import Config, list_errors, names, plugin_keys
from penstock.connect.transforms.plugins import Plugin, find_predicate, find_transform
from penstock.steps.connect_transforms.chain import PredicateSpec, TransformSpec

_INSERTED = ("topic.field", "partition.field", "offset.field", "timestamp.field", "static.field")


def configured_chain(config: Config) -> tuple[TransformSpec, ...]:
    """Return the transforms of a configuration, in their order; raise ConfigError with all errors.

    >>> config = {"transforms": "t", "transforms.t.type": "HoistField$Key", "transforms.t.field": "id"}
    >>> configured_chain(config)[0].options
    {'field': 'id'}
    """
    checked = plugin_keys(config)
    problems = [*list_errors(config).values(), *(text for each in checked for text in each.errors)]
    if problems:
        raise errors.ConfigError("; ".join(problems))
    values = {each.key.name: each.value for each in checked}
    predicates = {name: _predicate(name, values) for name in names(config, PREDICATES)}
    chain = [_transform(name, values, predicates) for name in names(config, TRANSFORMS)]
    return tuple(chain)


def _predicate(name: str, values: dict[str, Any]) -> PredicateSpec:
    plugin = find_predicate(values[f"{PREDICATES}.{name}.type"])
    assert plugin is not None  # noqa: S101 - checked with its keys
    return PredicateSpec(name, plugin.kind, _options(f"{PREDICATES}.{name}.", plugin, values))


def _transform(
    name: str, values: dict[str, Any], predicates: dict[str, PredicateSpec]
) -> TransformSpec:
    prefix = f"{TRANSFORMS}.{name}."
    plugin = find_transform(values[f"{prefix}type"])
    assert plugin is not None  # noqa: S101 - checked with its keys
    options = _options(prefix, plugin, values)
    if why := _unusable(plugin.kind, options):
        raise errors.ConfigError(f"transforms.{name}: {why}")
    chosen = values[f"{prefix}predicate"]
    if chosen is not None and chosen not in predicates:
        raise errors.ConfigError(
            f"transforms.{name}: Unknown configuration 'predicates.{chosen}.type'; the list `predicates` "
            f"has: {', '.join(predicates) or 'none'}"
        )
    negate = values[f"{prefix}negate"]
    predicate = predicates.get(chosen)
    return TransformSpec(name, plugin.kind, plugin.part, options, predicate, negate)


def _options(prefix: str, plugin: Plugin, values: dict[str, Any]) -> dict[str, Any]:
    options = {key.name: values[prefix + key.name] for key in plugin.definition.keys}
    if plugin.kind == "Cast":
        options["spec"] = cast_types(options["spec"])
    if plugin.kind == "ReplaceField":
        options["renames"] = rename_mappings(options["renames"])
    return options


def _unusable(kind: str, options: dict[str, Any]) -> str | None:
    """Return why options that are right one by one cannot be used together."""
    match kind:
        case "InsertField":
            return _unusable_insert(options)
        case "SetSchemaMetadata" if options["schema.name"] is options["schema.version"] is None:
            return "Neither schema name nor version configured"
        case "HeaderFrom" if len(options["fields"]) != len(options["headers"]):
            return "'fields' config must have the same number of elements as 'headers' config."
        case "TimestampConverter" if options["target.type"] == "string" and not options["format"]:
            return (
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
    return None


def _unusable_insert(options: dict[str, Any]) -> str | None:
    if all(options[key] is None for key in _INSERTED):
        return "No field insertion configured"
    if options["static.field"] is not None and options["static.value"] is None:
        field = re.sub("[!?]$", "", options["static.field"])
        return (
            "Invalid value null for configuration static.value: "
            f"No value specified for static field: {field}"
        )
    return None
