"""The keys `transforms.NAME.*` and `predicates.NAME.*` of a connector's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from penstock.connect.common_keys import COMMON, PREDICATES, TRANSFORMS, VERSION
from penstock.connect.config_definition import Check, Checked, ConfigError, Key, Type
from penstock.connect.transforms import plugins
from penstock.connect.transforms.option_checks import distinct, filled_list
from penstock.connect.transforms.plugins import Plugin

Config = Mapping[str, str | None]
PREDICATE = Key(
    "predicate",
    Type.STRING,
    None,
    "The name of the predicate that selects the records for this transform; default: all records.",
)
NEGATE = Key(
    "negate",
    Type.BOOLEAN,
    "false",
    "Whether the transform is for the records for which the predicate does not hold.",
)


@dataclass(frozen=True)
class _Kind:
    """What differs between transforms and predicates."""

    list_key: str
    word: str
    plugins: tuple[Plugin, ...]
    find: Callable[[str], Plugin | None]
    more: tuple[Key, ...] = ()


_TRANSFORM = _Kind(
    TRANSFORMS,
    "Transformation",
    plugins.TRANSFORMS,
    plugins.find_transform,
    (PREDICATE, NEGATE),
)
_PREDICATE = _Kind(PREDICATES, "Predicate", plugins.PREDICATES, plugins.find_predicate)


def plugin_keys(config: Config) -> list[Checked]:
    """Return the keys of all transforms and predicates that a configuration names, as `validate` does.

    >>> config = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": "a.*"}
    >>> [(each.key.name, *each.errors) for each in plugin_keys(config)][-2:]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('transforms.r.regex',),
     ('transforms.r.replacement',
      'Missing required configuration "transforms.r.replacement" which has no default value.')]
    """
    found: list[Checked] = []
    for kind in (_TRANSFORM, _PREDICATE):
        for alias in dict.fromkeys(names(config, kind.list_key)):
            found += _of_alias(kind, alias, config)
    return found


def list_errors(config: Config) -> dict[str, str]:
    """Return what is wrong with the lists `transforms` and `predicates`, by their keys.

    >>> list_errors({"transforms": "a,a"})["transforms"]
    'Invalid value [a, a] for configuration transforms: Duplicate alias provided.'
    """
    errors = {}
    for key in (TRANSFORMS, PREDICATES):
        given = names(config, key)
        if len({*given}) < len(given):
            errors[key] = str(ConfigError(key, given, "Duplicate alias provided."))
    return errors


def names(config: Config, list_key: str) -> list[str]:
    """Return the names that `transforms` or `predicates` has."""
    text = config.get(list_key)
    return [*COMMON.by_name[list_key].parsed(text)] if text is not None else []


def _of_alias(kind: _Kind, alias: str, config: Config) -> list[Checked]:
    prefix, group = f"{kind.list_key}.{alias}.", f"{kind.list_key.capitalize()}: {alias}"
    kinds = Key(
        f"{prefix}type",
        Type.CLASS,
        documentation=f"The class of the {kind.word.lower()} `{alias}`.",
        importance="HIGH",
        group=group,
        order=0,
        width="LONG",
        display_name=f"{kind.word} type for {alias}",
        recommended=tuple(plugin.class_name for plugin in kind.plugins),
    )
    version = replace(
        kinds,
        name=f"{prefix}plugin.version",
        type=Type.STRING,
        default=VERSION,
        documentation=f"The version of the {kind.word.lower()} `{alias}`; there is one.",
        order=1,
        display_name=f"{kind.word} version for {alias}",
        recommended=(VERSION,),
    )
    chosen, plugin = _type(kind, kinds, config)
    own = (*kind.more, *plugin.definition.keys) if plugin else ()
    listed = [
        replace(
            key,
            name=prefix + key.name,
            group=group,
            order=order,
            display_name=key.name,
            check=_check(key, prefix + key.name),
        )
        for order, key in enumerate(sorted(own, key=lambda key: key.name), 2)
    ]
    return [chosen, version.checked(config), *(key.checked(config) for key in listed)]


def _type(kind: _Kind, key: Key, config: Config) -> tuple[Checked, Plugin | None]:
    checked = key.checked(config)
    if checked.value is None:
        why = f"Not a {kind.word}"
        return checked.with_error(str(ConfigError(key.name, None, why))), None
    plugin = kind.find(checked.value)
    if plugin is None:
        unknown = ConfigError(key.name, checked.value, f"Class {checked.value} could not be found.")
        other = ConfigError(key.name, None, f"Not a {kind.word}")
        return Checked(key, None, (str(unknown), str(other))), None
    found = replace(checked, value=plugin.class_name)
    prefix = key.name.removesuffix("type")
    if config.get(f"{prefix}negate") is not None and config.get(f"{prefix}predicate") is None:
        found = found.with_error(
            f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' defining "
            "a predicate to be negated."
        )
    return found, plugin


def _check(key: Key, name: str) -> Check | None:
    """Return the check of a key; those of plain lists report the whole name of their key."""
    if key.type is not Type.LIST or key.check is not None:
        return key.check
    return filled_list(name) if key.required else distinct(name)
