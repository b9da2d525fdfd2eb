"""From the configuration of a connector to the definition of its pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.connect.common_keys import (
    CONNECTOR_CLASS,
    DEAD_LETTERS,
    KEY_CONVERTER,
    TOLERANCE,
    TOPICS,
    TOPICS_REGEX,
    VALUE_CONVERTER,
)
from penstock.connect.connector_class import Catalog
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.converters import for_connector

STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER_CONVERTERS = {KEY_CONVERTER: STRING, VALUE_CONVERTER: STRING}
"""The converters of connectors that name none."""


def definition_of(
    pipeline: str, connector: str, given: Mapping[str, str], catalog: Catalog
) -> dict[str, Any]:
    """Return the definition of the pipeline that a connector runs as.

    >>> from penstock.connect.connectors import CATALOG
    >>> sink = {"connector.class": "FileStreamSink", "topics": "a,b", "file": "/tmp/out"}
    >>> made = definition_of("out", "out", {"name": "out", **sink}, CATALOG)
    >>> made["group"], made["source"], made["dead_letters"]
    ('connect-out', {'kafka': {'topics': ['a', 'b']}}, {'stop': {}})
    """
    kind = catalog.find(given[CONNECTOR_CLASS])
    config = ConnectorConfig(given, kind.definition())
    made = {"name": pipeline, **kind().pipeline(config)}
    if kind.kind == "source":
        return made
    common = {
        "group": f"connect-{connector}",
        "source": {"kafka": _topics(config)},
        "decode": _decode(given),
        **_errors(config),
    }
    return {**common, **made}


def _topics(config: ConnectorConfig) -> dict[str, Any]:
    if topics := config[TOPICS]:
        return {"topics": topics}
    return {"pattern": config[TOPICS_REGEX]}


def _decode(given: Mapping[str, str]) -> Any:
    options = for_connector(given, WORKER_CONVERTERS).value.options
    return "raw" if options is not None and options.form == "bytes" else "text"


def _errors(config: ConnectorConfig) -> dict[str, Any]:
    """Return what becomes of bad records: the first one ends the connector, or they are left out."""
    if config[TOLERANCE] == "none":
        return {"dead_letters": {"stop": {}}, "restart": {"limit": 0}}
    letters = config[DEAD_LETTERS]
    return {"dead_letters": letters or {"discard": {}}}
