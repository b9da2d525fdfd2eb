"""Keys of a configuration that no part understands: they are reported, never ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.connect.common_keys import PREDICATES, TRANSFORMS
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.converters import WORKER_CONVERTERS, for_connector
from penstock.connect.header_forms import header_notes
from penstock.connect.transforms.plugin_keys import plugin_keys
from penstock.errors import ConfigError, nearest

RESET = "consumer.override.auto.offset.reset"
_PLUGINS = (f"{TRANSFORMS}.", f"{PREDICATES}.")
_OTHERS = {
    "producer.override.": "settings of Kafka's Java client; records are written by librdkafka and Spark",
    "consumer.override.": "settings of Kafka's Java client; records are read by Spark",
    "admin.override.": "settings of Kafka's Java client; the connection's settings are used",
    "topic.creation.": "topics that do not exist are made with the broker's defaults",
}


def unused_keys(config: ConnectorConfig) -> Iterator[tuple[str, str]]:
    """Yield keys of converters, transforms and clients that have no effect, each with a text.

    >>> from penstock.connect.common_keys import SINK
    >>> [text for _, text in unused_keys(ConnectorConfig({"transforms.a.type": "Filter"}, SINK))]
    ["transforms.a.type has no effect: 'transforms' does not name 'a'"]
    """
    yield from _of_converters(config)
    yield from _of_plugins(config)
    for key in config.given:
        for start, why in _OTHERS.items():
            if key.startswith(start) and key != RESET and key not in config.definition.by_name:
                yield key, f"{key} has no effect: {why}"


def _of_converters(config: ConnectorConfig) -> Iterator[tuple[str, str]]:
    try:
        found = for_connector(config.given, WORKER_CONVERTERS)
    except ConfigError:
        return  # it is an error of its own
    for note in (*found.notes, *header_notes(found)):
        yield note.partition(":")[0].partition(",")[0], note


def _of_plugins(config: ConnectorConfig) -> Iterator[tuple[str, str]]:
    known = [each.key.name for each in plugin_keys(config.given)]
    for key in config.given:
        kind, _, rest = key.partition(".")
        if not key.startswith(_PLUGINS) or key in known:
            continue
        alias = rest.partition(".")[0]
        if alias not in (config[kind] or []):
            yield key, f"{key} has no effect: {kind!r} does not name {alias!r}"
        else:
            own = [name for name in known if name.startswith(f"{kind}.{alias}.")]
            yield key, f"{key} is not known, and has no effect; {nearest(key, own)}"
