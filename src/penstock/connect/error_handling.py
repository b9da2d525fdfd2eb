"""From `errors.*` of a connector to what its pipeline does when records or whole batches fail."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from penstock.connect.common_keys import CONNECTOR_CLASS, DEAD_LETTERS, TOLERANCE
from penstock.connect.connector_class import ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.converters import Converters
from penstock.connect.transforms.plugins import PACKAGE
from penstock.pipeline.definition import Restart
from penstock.sinks.connect_errors import ConnectErrors, PluginClasses
from penstock.sinks.connect_errors.connect_errors_sink import LogOptions
from penstock.steps.connect_transforms.chain import TransformSpec

REPLICATION = "errors.deadletterqueue.topic.replication.factor"
CONTEXT = "errors.deadletterqueue.context.headers.enable"
_ANY_NUMBER = 2**31 - 1
_ENDLESS = 1_000_000
# While nothing is in its topics a connector looks again this often, in seconds.
_LONGEST_WAIT = 5.0


def error_handling(
    connector: str,
    kind: type[ConnectorClass],
    config: ConnectorConfig,
    converters: Converters,
    chain: Sequence[TransformSpec],
) -> dict[str, Any]:
    """Return the part of a definition that is about errors."""
    tolerates = config[TOLERANCE] == "all"
    is_sink = kind.kind == "sink"
    errors = ConnectErrors(
        connector=connector,
        classes=_classes(kind, config, converters, chain),
        tolerance=config[TOLERANCE],
        topic=(config[DEAD_LETTERS] or None) if is_sink and tolerates else None,
        replication=config[REPLICATION] if is_sink and REPLICATION in config.given else None,
        context=bool(is_sink and config[CONTEXT]),
        log=LogOptions(
            enable=config["errors.log.enable"], messages=config["errors.log.include.messages"]
        ),
    )
    return {"dead_letters": errors, "max_refused": _ANY_NUMBER, "restart": _restart(config)}


def _classes(
    kind: type[ConnectorClass],
    config: ConnectorConfig,
    converters: Converters,
    chain: Sequence[TransformSpec],
) -> PluginClasses:
    return PluginClasses(
        connector=config.given.get(CONNECTOR_CLASS, kind.names[0]),
        key=converters.key.converter.name,
        value=converters.value.converter.name,
        transforms=tuple(map(class_name, chain)),
    )


def class_name(spec: TransformSpec) -> str:
    """Return the class of a transform.

    >>> class_name(TransformSpec("k", "ExtractField", "key"))
    'org.apache.kafka.connect.transforms.ExtractField$Key'
    """
    return PACKAGE + spec.kind + (f"${spec.part.capitalize()}" if spec.part else "")


def _restart(config: ConnectorConfig) -> dict[str, Any]:
    """Return how often a failed batch is tried again: at once after `errors.retry.timeout` is over.

    A connector that tolerates errors is started again after failures that are not those of a record.
    """
    longest = max(config["errors.retry.delay.max.ms"] / 1000, 0.001)
    waits = Restart(longest=min(longest, _LONGEST_WAIT))
    timeout = config["errors.retry.timeout"] / 1000
    limit = Restart().limit if config[TOLERANCE] == "all" else 0
    if timeout < 0:
        limit = _ENDLESS
    elif timeout > 0:
        limit = max(limit, _tries(waits, timeout))
    return {"limit": limit, "longest": waits.longest}


def _tries(waits: Restart, timeout: float) -> int:
    waited = 0.0
    for tries in count(1):
        waited += waits.after(tries)
        if waited >= timeout or tries >= _ENDLESS:
            return tries
    raise AssertionError  # `count` does not end
