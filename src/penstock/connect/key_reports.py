"""Keys of a configuration that a class refuses, that have no effect here, or that no one knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.connect.connector_config import ConnectorConfig
from penstock.errors import nearest

KeyTable = Mapping[str, str]
"""Keys, each with a reason; one that ends with `*` is for all keys that begin like that."""
_OF_ALL = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "transforms.",
    "predicates.",
    "topic.creation.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
)
"""Keys below these belong to all connectors."""


def entry(table: KeyTable, key: str) -> str | None:
    """Return the entry of a table that is for a key: its own, or the longest that it begins with.

    >>> table = {"proxy.*": "there is no proxy", "proxy.host.*": "x", "ssl": "y"}
    >>> entry(table, "proxy.port"), entry(table, "proxy.host.name"), entry(table, "ssl.ca")
    ('proxy.*', 'proxy.host.*', None)
    """
    if key in table:
        return key
    found = [name for name in table if name.endswith("*") and key.startswith(name[:-1])]
    return max(found, key=len, default=None)


def refusals(
    refused: KeyTable, without_effect: KeyTable, config: ConnectorConfig
) -> Iterator[tuple[str, str]]:
    """Yield the keys that are refused, with the reason; an empty value is not one.

    >>> from penstock.connect.config_definition import Definition
    >>> config = ConnectorConfig({"a.x": "1", "a.y": "", "a.z": "1"}, Definition())
    >>> [*refusals({"a.*": "use b"}, {"a.z": "it is old"}, config)]
    [('a.x', 'Configuration a.x is not supported here: use b')]
    """
    both = {**refused, **without_effect}
    for key in _own(config):
        if (found := entry(both, key)) in refused and config.given[key].strip():
            yield key, f"Configuration {key} is not supported here: {refused[str(found)]}"


def key_warnings(
    refused: KeyTable, without_effect: KeyTable, config: ConnectorConfig
) -> Iterator[tuple[str, str]]:
    """Yield the keys that have no effect, with the reason, and those that are unknown.

    >>> from penstock.connect.config_definition import Definition, Key
    >>> config = ConnectorConfig({"tabel": "1", "retries": "5"}, Definition((Key("table"),)))
    >>> [text for _, text in key_warnings({}, {"retries": "rows are always retried"}, config)]
    ["tabel is not known ... 'table'?", 'retries has no effect here: rows are always retried']
    """
    both = {**refused, **without_effect}
    names = [name for name in (*config.definition.by_name, *both) if not name.endswith("*")]
    for key in _own(config):
        found = entry(both, key)
        if found is None:
            hint = nearest(key, names)
            more = f"; {hint}" if hint.startswith("did") else ""
            yield key, f"{key} is not known to this connector, and has no effect{more}"
        elif found in without_effect:
            yield key, f"{key} has no effect here: {without_effect[found]}"


def _own(config: ConnectorConfig) -> Iterator[str]:
    """Yield the keys that neither the class nor all connectors understand."""
    for key in config.given:
        if key not in config.definition.by_name and not key.startswith(_OF_ALL):
            yield key
