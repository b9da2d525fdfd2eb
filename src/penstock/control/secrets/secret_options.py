"""The options of components that are secrets by their type, whatever their names are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from penstock.connect.common_keys import CONNECTOR_CLASS
from penstock.connect.config_definition import Type
from penstock.connect.connector_class import UnknownClassError
from penstock.errors import PenstockError
from penstock.flows.definition.kafka_options import KafkaConnection
from penstock.flows.definition.reading import defines_flow
from penstock.flows.definition.step_model import KINDS
from penstock.flows.definition.triggers import SOURCES, TRIGGERS
from penstock.flows.publish.operation import OPERATIONS
from penstock.pipeline.registry import component, current_name, names

_SECTIONS = {"source": "source", "decode": "decode", "sink": "sink", "dead_letters": "sink"}


def secret_options(definition: Any) -> frozenset[str]:
    """Return the names of secret options of all components, or of the connector, that are named."""
    if not isinstance(definition, Mapping):
        return frozenset()
    if CONNECTOR_CLASS in definition:
        return _of_connectors(str(definition[CONNECTOR_CLASS]))
    if defines_flow(definition):
        return _of_flows()
    found = [_options(kind, name) for kind, name in _components(definition)]
    return frozenset().union(*found)


def _components(definition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section, kind in _SECTIONS.items():
        yield from _named(kind, definition.get(section))
    steps = definition.get("steps")
    for step in steps if isinstance(steps, list) else ():
        yield from _named("step", step)


def _named(kind: str, given: Any) -> Iterator[tuple[str, str]]:
    if isinstance(given, Mapping):
        yield from ((kind, str(name)) for name in given)


@cache
def _of_connectors(name: str) -> frozenset[str]:
    """Return the keys of a connector's class that are passwords, of whatever package it is."""
    from penstock.connect.connectors import CATALOG  # noqa: PLC0415 - it loads classes of others

    try:
        keys = CATALOG.find(name).keys
    except UnknownClassError:
        return frozenset()
    return frozenset(key.name for key in keys if key.type is Type.PASSWORD)


@cache
def _of_flows() -> frozenset[str]:
    """Return the names of secret options of everything that a flow can have."""
    own: list[type[BaseModel]] = [
        *TRIGGERS.values(),
        *KINDS.values(),
        *OPERATIONS.values(),
        KafkaConnection,
    ]
    found = [_passwords(cls.model_json_schema()) for cls in own]
    sources = [_options("source", name) for name in SOURCES.values()]
    return frozenset().union(*found, *sources)


@cache
def _options(kind: str, name: str) -> frozenset[str]:
    if current_name(kind, name) not in names(kind):
        return frozenset()
    try:
        cls = component(kind, name)
    except PenstockError:  # an extra is missing: its names alone decide
        return frozenset()
    found = frozenset(_passwords(cls.model_json_schema()))
    return found | {name} if cls.main_option in found else found


def _passwords(schema: Any) -> Iterator[str]:
    """Yield the names of properties with pydantic's format of a secret, at any depth."""
    if isinstance(schema, list):
        for item in schema:
            yield from _passwords(item)
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    for name, each in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(each, Mapping) and _is_password(each):
            yield name
    for item in schema.values():
        yield from _passwords(item)


def _is_password(schema: Mapping[str, Any]) -> bool:
    forms = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return any(form.get("format") == "password" for form in forms if isinstance(form, Mapping))
