"""The converters that a configuration can name, in replies of `validate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.connect.common_keys import (
    HEADER_CONVERTER,
    KEY_CONVERTER,
    VALUE_CONVERTER,
    VERSION,
)
from penstock.connect.converters import CONVERTERS, SIMPLE_HEADERS, WORKER_CONVERTERS

_USES = {KEY_CONVERTER: "key", VALUE_CONVERTER: "value", HEADER_CONVERTER: "header"}
_DEFAULTS = {**WORKER_CONVERTERS, HEADER_CONVERTER: SIMPLE_HEADERS}


def converters(use: str) -> list[str]:
    """Return the classes of converters for keys, values or headers.

    >>> "org.apache.kafka.connect.storage.SimpleHeaderConverter" in converters("value")
    False
    """
    return sorted(each.name for each in CONVERTERS if use in each.uses)


def with_converters(checked: dict[str, Any], worker: Mapping[str, str]) -> dict[str, Any]:
    """Return the reply of `validate` with the converters of the worker, and those that UIs can offer."""
    for each in checked["configs"]:
        definition, value = each["definition"], each["value"]
        name = value["name"].removesuffix(".plugin.version")
        if name not in _USES:
            continue
        is_class = name == value["name"]
        default = worker.get(name) or _DEFAULTS[name] if is_class else VERSION
        definition["default_value"] = definition["default_value"] or default
        value["value"] = value["value"] or default
        value["recommended_values"] = converters(_USES[name]) if is_class else [VERSION]
    return checked
