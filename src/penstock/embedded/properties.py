"""Writes the server.properties of one node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.config.jaas import jaas_line
from penstock.embedded.home import NodePlace, State
from penstock.embedded.oidc import AUDIENCE, ISSUER
from penstock.embedded.ports import HOST
from penstock.embedded.security import NODE_USER, OWNER, Security


def node_properties(
    node: NodePlace, state: State, security: Security, data: Path
) -> dict[str, str]:
    """Return the settings of one node; a small cluster that starts quickly and listens on loopback."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "log.dirs": str(data),
        "controller.quorum.bootstrap.servers": ",".join(
            f"{HOST}:{each.controller_port}" for each in state.nodes
        ),
        **_listeners(node, security),
        **_replication(len(state.nodes)),
        **_quick(),
        **(_node_log_in(state) if security.guarded else {}),
        **(_client_log_in(state, security) if security.sasl else {}),
        **(_acls(security) if security.acls else {}),
    }


def _listeners(node: NodePlace, security: Security) -> dict[str, str]:
    between = "SASL_PLAINTEXT" if security.guarded else "PLAINTEXT"
    protocols = {"CLIENT": security.protocol.upper(), "CONTROLLER": between}
    ports = {"CLIENT": node.client_port, "CONTROLLER": node.controller_port}
    if security.guarded:
        protocols["INTERNAL"], ports["INTERNAL"] = between, node.internal_port
    return {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
        "inter.broker.listener.name": "INTERNAL" if security.guarded else "CLIENT",
        "controller.listener.names": "CONTROLLER",
    }


def _replication(nodes: int) -> dict[str, str]:
    copies, in_sync = (3, 2) if nodes >= 3 else (1, 1)
    return {
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(in_sync),
    }


def _quick() -> dict[str, str]:
    # Kafka's defaults are for large clusters: fifty partitions per internal topic cost seconds here.
    return {
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "4",
        "log.cleaner.dedupe.buffer.size": "16777216",
        # A lost node is noticed sooner: tests of faults wait for it.
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "1000",
    }


def _node_log_in(state: State) -> dict[str, str]:
    secret = state.node_password
    options = {"username": NODE_USER, "password": secret, f"user_{NODE_USER}": secret}
    entry = jaas_line("PLAIN", options)
    return {
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.internal.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.internal.plain.sasl.jaas.config": entry,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": entry,
    }


def _client_log_in(state: State, security: Security) -> dict[str, str]:
    mechanism = security.mechanism
    users = {f"user_{name}": secret for name, secret in state.users.items()}
    entry = jaas_line(mechanism, users if mechanism == "PLAIN" else {})
    return {
        "listener.name.client.sasl.enabled.mechanisms": mechanism,
        f"listener.name.client.{mechanism.lower()}.sasl.jaas.config": entry,
    }


def token_properties(jwks: Path) -> dict[str, str]:
    """Return the settings of a listener that takes tokens signed with one of these keys."""
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    return {
        "listener.name.client.oauthbearer.sasl.server.callback.handler.class": handler,
        "sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }


def _acls(security: Security) -> dict[str, str]:
    owner = OWNER if security.sasl else f"CN={OWNER}"
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{NODE_USER};User:{owner}",
    }


def tls_properties(keystore: Path, ca: Path, security: Security) -> dict[str, str]:
    """Return the settings of the encrypted listener."""
    return {
        "listener.name.client.ssl.keystore.type": "PEM",
        "listener.name.client.ssl.keystore.location": str(keystore),
        "listener.name.client.ssl.truststore.type": "PEM",
        "listener.name.client.ssl.truststore.location": str(ca),
        "listener.name.client.ssl.client.auth": (
            "required" if security.client_certificate else "none"
        ),
    }


def as_text(settings: Mapping[str, object]) -> str:
    """Write settings in Java's form."""
    return "".join(f"{key}={_value(value)}\n" for key, value in settings.items())


def _value(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    # The file is read as Latin-1, with Java's own (UTF-16) escapes for the rest.
    return "".join(c if ord(c) < 128 else _escape(c) for c in text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
