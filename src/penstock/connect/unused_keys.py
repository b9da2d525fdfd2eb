"""Keys of a configuration that no part understands: they are reported, never ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.connect.common_keys import (
    DEAD_LETTERS,
    PREDICATES,
    TOLERANCE,
    TRANSFORMS,
    VERSION,
)
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.converters import WORKER_CONVERTERS, for_connector
from penstock.connect.header_forms import header_notes
from penstock.connect.transforms.plugin_keys import plugin_keys
from penstock.errors import ConfigError, nearest

RESET = "consumer.override.auto.offset.reset"
STARTS = {"earliest": "earliest", "latest": "latest", "none": "committed"}
"""Where a sink begins that has no offsets: the values of RESET, as the source `kafka` has them."""
_PLUGINS = (f"{TRANSFORMS}.", f"{PREDICATES}.")
_OTHERS = {
    "producer.override.": "settings of Kafka's Java client; records are written by librdkafka and Spark",
    "consumer.override.": "settings of Kafka's Java client; records are read by Spark",
    "admin.override.": "settings of Kafka's Java client; the connection's settings are used",
    "topic.creation.": "topics that do not exist are made with the broker's defaults",
}
_BOUNDARY = "a transaction ends with a round of reading"
_ACCEPTED = {
    "tasks.max.enforce": "never more tasks are shown than tasks.max",
    "config.action.reload": "references to secrets are read when a connector starts",
    "transaction.boundary": _BOUNDARY,
    "transaction.boundary.interval.ms": _BOUNDARY,
    "offsets.storage.topic": "positions are in the topic penstock-positions",
    "topic.creation.groups": _OTHERS["topic.creation."],
}
"""Keys of all connectors that change nothing here, whatever their value."""


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
    yield from _of_all(config)


def _of_all(config: ConnectorConfig) -> Iterator[tuple[str, str]]:
    """Yield keys that every connector takes, and whose given value has no effect.

    >>> from penstock.connect.common_keys import SINK
    >>> given = {"config.action.reload": "none", "tasks.max.enforce": "true"}
    >>> [key for key, _ in _of_all(ConnectorConfig(given, SINK))]
    ['config.action.reload']
    """
    for key, text in config.given.items():
        known, value = config.definition.by_name.get(key), text.strip().lower()
        if key in _ACCEPTED and known and value not in ("", known.default):
            yield key, f"{key} has no effect: {_ACCEPTED[key]}"
        if key.endswith(".plugin.version") and value not in ("", VERSION):
            yield key, f"{key} has no effect: there is one version of each class"
    is_sink = DEAD_LETTERS in config.definition.by_name
    if is_sink and config[DEAD_LETTERS] and config[TOLERANCE] == "none":
        yield (
            DEAD_LETTERS,
            f"{DEAD_LETTERS} has no effect: {TOLERANCE} is none, and the first bad record ends the "
            f"connector; give {TOLERANCE}=all",
        )


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
