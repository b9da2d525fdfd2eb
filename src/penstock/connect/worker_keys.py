"""The keys of a Connect worker's properties: used, stored elsewhere, or without effect."""

from __future__ import annotations

from penstock.connect.config_definition import Definition, Key, Type, at_least, one_of_any_case

_TOPICS = {"partitions": Type.INT, "replication.factor": Type.SHORT}
_MILLISECONDS = (
    "offset.flush.interval.ms",
    "offset.flush.timeout.ms",
    "task.shutdown.graceful.timeout.ms",
    "scheduled.rebalance.max.delay.ms",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "rebalance.timeout.ms",
    "worker.sync.timeout.ms",
    "worker.unsync.backoff.ms",
)
_FLAGS = ("topic.creation.enable", "topic.tracking.enable", "topic.tracking.allow.reset")

CHECKED = Definition(
    (
        *(Key(name, Type.LONG, None, check=None) for name in _MILLISECONDS),
        *(Key(name, Type.BOOLEAN, None) for name in _FLAGS),
        *(
            Key(f"{store}.storage.{name}", kind, None)
            for store in ("offset", "config", "status")
            for name, kind in _TOPICS.items()
        ),
        Key("rest.port", Type.INT, "8083", check=at_least(0)),
        Key(
            "exactly.once.source.support",
            default="disabled",
            check=one_of_any_case("disabled", "preparing", "enabled"),
        ),
        Key(
            "plugin.discovery",
            default="hybrid_warn",
            check=one_of_any_case("only_scan", "hybrid_warn", "hybrid_fail", "service_load"),
        ),
        Key(
            "security.protocol",
            default="PLAINTEXT",
            check=one_of_any_case("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        ),
    )
)
"""The keys whose values are checked although most of them have no effect: a typing error is an error."""

NOTES = {
    "group.id": "workers of one store work together: --store, or PENSTOCK_STORE",
    "config.storage.": "configurations are in the store of the control plane",
    "offset.storage.": "positions of sources are in the topic penstock-positions",
    "offset.flush.": "positions are written in the transaction of their records",
    "status.storage.": "states are in the store of the control plane",
    "plugin.path": "connectors are Python packages, those of Kafka are built in; jars are not loaded",
    "plugin.discovery": "connectors are found by their entry points",
    "exactly.once.source.support": "sources always write records and positions in one transaction",
    "scheduled.rebalance.max.delay.ms": "a worker that ends is taken over from when its lease ends",
    "task.shutdown.graceful.timeout.ms": "the current batch is finished",
    "rest.advertised.": "the address of the server is that of its listener",
    "internal.": "what Connect stores for itself has no counterpart",
    "metric": "metrics are at /metrics of the server",
    "auto.include.jmx.reporter": "metrics are at /metrics of the server",
    "worker.sync.timeout.ms": "workers do not wait for each other",
    "worker.unsync.backoff.ms": "workers do not wait for each other",
    "heartbeat.interval.ms": "leases are renewed by the worker: penstock worker --lease",
    "session.timeout.ms": "leases are renewed by the worker: penstock worker --lease",
    "rebalance.timeout.ms": "leases are renewed by the worker: penstock worker --lease",
    "connect.protocol": "workers share deployments by leases in the store",
    "inter.worker.": "workers do not call each other",
    "connector.client.config.override.policy": "a connector may not change the cluster it works with",
    "topic.tracking.": "the topics of a connector are those of its configuration",
}
"""Keys by their beginnings, and what is in their place."""

WITHOUT_EFFECT = {
    "config.providers.": "providers have no parameters here: connectors may refer to any file",
    "access.control.allow": "origins of web pages are configured with the server, in penstock.yaml",
    "admin.listeners": "there is one listener; /admin is on it",
    "rest.extension.classes": "extensions are Java classes; users and roles are those of the server",
    "response.http.headers.config": "the headers of replies are fixed",
    "listeners.https.": "certificate and key of the server are PEM files: --tls-cert, --tls-key",
    "ssl.client.auth": "clients of the API log in with a token",
    "producer.": "producers do not have this setting here",
    "consumer.": "consumers do not have this setting here",
    "admin.": "the settings of the connection are used",
    "client.": "clients do not have this setting here",
}
"""Keys by their beginnings that have no equivalent: each is named in a warning."""

CLIENT_KEYS = (
    "client.id",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "socket.connection.setup.timeout.ms",
)
"""The settings of all clients that a connection has under the same name."""

PREFIXED = {
    "producer.": {
        "compression.type": "compression.type",
        "linger.ms": "linger.ms",
        "batch.size": "batch.size",
        "max.request.size": "message.max.bytes",
    },
    "consumer.": {
        "client.rack": "client.rack",
        "fetch.max.bytes": "fetch.max.bytes",
        "fetch.min.bytes": "fetch.min.bytes",
        "fetch.max.wait.ms": "fetch.wait.max.ms",
        "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    },
    "admin.": {},
}
"""The settings of producers and consumers that a connection has, and what they are called there."""
