"""The property file of a Connect worker: what of it is used here, and what stands in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.connect.common_keys import HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER
from penstock.errors import ConfigError

_CONVERTERS = (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER)
_CLIENTS = ("producer.", "consumer.", "admin.")
_CONNECTION = ("security.", "sasl.", "ssl.")
_NOTES = {
    "group.id": "workers of one store work together: --store, or PENSTOCK_STORE",
    "config.storage.": "configurations are in the store of the control plane",
    "offset.storage.": "positions of sources are in the topic penstock-positions",
    "offset.flush.": "positions are written in the transaction of their records",
    "status.storage.": "states are in the store of the control plane",
    "plugin.path": "connectors are Python packages; those of Kafka are built in",
    "plugin.discovery": "connectors are found by their entry points",
    "exactly.once.source.support": "sources always write records and positions in one transaction",
    "scheduled.rebalance.max.delay.ms": "a worker that ends is taken over from when its lease ends",
    "task.shutdown.graceful.timeout.ms": "the current batch is finished",
    "rest.advertised.": "the address of the server is that of its listener",
    "internal.": "what Connect stores for itself has no counterpart",
    "metric": "metrics are at /metrics of the server",
    "worker.sync.timeout.ms": "workers do not wait for each other",
    "worker.unsync.backoff.ms": "workers do not wait for each other",
    "heartbeat.interval.ms": "leases are renewed by the worker: penstock worker --lease",
    "session.timeout.ms": "leases are renewed by the worker: penstock worker --lease",
    "rebalance.timeout.ms": "leases are renewed by the worker: penstock worker --lease",
    "connector.client.config.override.policy": "a connector may not change the cluster it works with",
    "topic.creation.enable": "topics that do not exist are created",
    "config.providers": "secrets are references of Penstock: ${env:NAME}, ${file:PATH}",
    "access.control.allow": "origins of web pages are configured with the server: --allow-origin",
}


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker's properties mean here."""

    connection: dict[str, str]
    converters: dict[str, str]
    listeners: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> WorkerSettings:
        """Read the properties of a worker; raise where the cluster or a converter is missing.

        >>> worker = {"bootstrap.servers": "b:9092", "key.converter": "x.K", "value.converter": "x.V"}
        >>> found = WorkerSettings.of({**worker, "group.id": "g"})
        >>> found.notes["group.id"]
        'workers of one store work together: --store, or PENSTOCK_STORE'
        """
        for key in ("bootstrap.servers", KEY_CONVERTER, VALUE_CONVERTER):
            if not given.get(key):
                raise ConfigError(
                    f"the worker's properties have no {key}; a worker of Kafka Connect has one as well"
                )
        connection = {"bootstrap.servers": given["bootstrap.servers"]}
        converters, notes = dict[str, str](), dict[str, str]()
        for key, value in given.items():
            if key.startswith(_CONNECTION):
                connection[key] = value
            elif key.startswith(_CONVERTERS):
                converters[key] = value
            elif key not in ("bootstrap.servers", "listeners", "rest.host.name", "rest.port"):
                notes[key] = _note(key)
        return cls(connection, converters, _listeners(given), notes)


def _note(key: str) -> str:
    if key.startswith(_CLIENTS):
        return "settings of Kafka's Java client; the connection's settings are used for all clients"
    for start, note in _NOTES.items():
        if key.startswith(start):
            return note
    return "this key is not known, and has no effect"


def _listeners(given: Mapping[str, str]) -> tuple[str, ...]:
    if text := given.get("listeners"):
        return tuple(each.strip() for each in text.split(",") if each.strip())
    if "rest.port" in given:
        return (f"http://{given.get('rest.host.name') or '127.0.0.1'}:{given['rest.port']}",)
    return ()
