"""The keys of a connector's converters, as `validate` lists and checks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from penstock.connect.common_keys import HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER
from penstock.connect.config_definition import Checked
from penstock.connect.converters import Converter, find_converter
from penstock.errors import ConfigError

CONVERTER_KEYS = (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER)


def converter_class(given: Mapping[str, str], key: str) -> Converter | None:
    """Return the converter that a configuration names itself; None where it names none, or no class."""
    name = given.get(key)
    if name is None or _class_error(given, key):
        return None
    return find_converter(name, _use(key))


def class_errors(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the keys of converters whose classes do not exist.

    >>> [text for _, text in class_errors({"value.converter": "Jsn"})]
    ['Invalid value Jsn for configuration value.converter: Class Jsn could not be found.']
    """
    for key in CONVERTER_KEYS:
        if error := _class_error(given, key):
            yield key, error


def _class_error(given: Mapping[str, str], key: str) -> str | None:
    name = given.get(key)
    if name is None:
        return None
    try:
        find_converter(name, _use(key))
    except ConfigError as error:
        text = str(error)
        end = "could not be found."
        return text[: text.index(end) + len(end)] if end in text else text
    return None


def converter_keys(given: Mapping[str, str]) -> list[Checked]:
    """Return the keys of the converters that a configuration names, with their values and errors.

    >>> given = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "si"}
    >>> [each.errors for each in converter_keys(given) if each.errors]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('Invalid value si for configuration value.converter.schemas.enable: Expected value to be either true
       or false',)]
    """
    found: list[Checked] = []
    for key in CONVERTER_KEYS:
        if converter := converter_class(given, key):
            found += _prefixed(given, key, converter)
    return found


def _prefixed(given: Mapping[str, str], key: str, converter: Converter) -> Iterator[Checked]:
    below = {k.removeprefix(f"{key}."): v for k, v in given.items() if k.startswith(f"{key}.")}
    for each in converter.checked(below, _use(key)):
        name = f"{key}.{each.key.name}"
        errors = tuple(
            text.replace(f"configuration {each.key.name}", f"configuration {name}").replace(
                f'"{each.key.name}"', f'"{name}"'
            )
            for text in each.errors
        )
        yield replace(each, key=replace(each.key, name=name), errors=errors)


def _use(key: str) -> str:
    return key.partition(".")[0]
