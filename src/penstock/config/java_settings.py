"""Translation of a connection for the Java client (kafka-clients 3.9, the one inside Spark)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from penstock.config.jaas import jaas_line
from penstock.config.keys import KEYS, Value
from penstock.config.pem import certificates, private_key, read_pem
from penstock.errors import ConfigError

Values = Mapping[str, Value]

_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
_RESETS = {
    "smallest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "end": "latest",
    "error": "none",
}
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"

# librdkafka's "off" or "let the system choose" is 0, Java's is -1.
_zero_is_minus_one: Callable[[Value], str] = lambda value: str(value or -1)  # noqa: E731
_CHANGED: Mapping[str, Callable[[Value], str]] = {
    "security.protocol": lambda value: str(value).upper(),
    "auto.offset.reset": lambda value: _RESETS.get(str(value), str(value)),
    "partition.assignment.strategy": lambda value: ",".join(
        _ASSIGNORS[word] for word in str(value).split(",")
    ),
    "linger.ms": lambda value: str(math.ceil(float(value))),
    "queue.buffering.max.kbytes": lambda value: str(int(value) * 1024),
    "ssl.endpoint.identification.algorithm": lambda value: "" if value == "none" else str(value),
    "socket.send.buffer.bytes": _zero_is_minus_one,
    "socket.receive.buffer.bytes": _zero_is_minus_one,
    "connections.max.idle.ms": _zero_is_minus_one,
}


def to_jvm(values: Values) -> dict[str, str]:
    """Return the Java client's configuration; PEM contents are inline, for clusters."""
    renamed = {
        key.jvm: _CHANGED.get(key.name, _text)(values[key.name])
        for key in KEYS
        if key.jvm and key.name in values
    }
    protocol = str(values.get("security.protocol", "plaintext"))
    sasl = _sasl(values) if protocol.startswith("sasl_") else {}
    return renamed | sasl | (_tls(values) if protocol.endswith("ssl") else {})


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sasl(values: Values) -> dict[str, str]:
    mechanism = str(values.get("sasl.mechanisms", "GSSAPI"))
    settings = {"sasl.mechanism": mechanism}
    if mechanism == "GSSAPI":
        options = _kerberos(values)
        settings["sasl.kerberos.service.name"] = str(
            values.get("sasl.kerberos.service.name", "kafka")
        )
    elif mechanism == "OAUTHBEARER":
        options = _oauth(values)
        settings["sasl.login.callback.handler.class"] = _OAUTH_HANDLER
        settings["sasl.oauthbearer.token.endpoint.url"] = str(
            values["sasl.oauthbearer.token.endpoint.url"]
        )
    else:
        options = {name: str(values[f"sasl.{name}"]) for name in ("username", "password")}
    return settings | {"sasl.jaas.config": jaas_line(mechanism, options)}


def _kerberos(values: Values) -> dict[str, str | bool]:
    principal = values.get("sasl.kerberos.principal")
    named: dict[str, str | bool] = {"principal": str(principal)} if principal else {}
    if keytab := values.get("sasl.kerberos.keytab"):
        return {"useKeyTab": True, "storeKey": True, "keyTab": str(keytab), **named}
    return {"useTicketCache": True, **named}


def _oauth(values: Values) -> dict[str, str | bool]:
    needed = {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
    }
    if values.get("sasl.oauthbearer.method") != "oidc" or not all(
        name in values for name in (*needed.values(), "sasl.oauthbearer.token.endpoint.url")
    ):
        raise ConfigError(
            "sasl.mechanisms OAUTHBEARER in the Java client needs sasl.oauthbearer.method oidc "
            "with sasl.oauthbearer.token.endpoint.url, .client.id and .client.secret"
        )
    options: dict[str, str | bool] = {name: str(values[key]) for name, key in needed.items()}
    if scope := values.get("sasl.oauthbearer.scope"):
        options["scope"] = str(scope)
    for pair in filter(None, str(values.get("sasl.oauthbearer.extensions", "")).split(",")):
        name, _, value = pair.partition("=")
        options[f"extension_{name.strip()}"] = value.strip()
    return options | _trust(values, "https.ca")


def _tls(values: Values) -> dict[str, str]:
    if values.get("enable.ssl.certificate.verification") is False:
        raise ConfigError(
            "enable.ssl.certificate.verification is false: the Java client always verifies; "
            "give the broker's certificate as ssl.ca.location"
        )
    return _trust(values, "ssl.ca") | _client_certificate(values)


def _trust(values: Values, part: str) -> dict[str, str]:
    pem = _pem(values, part)
    if pem is None:
        return {}
    trusted = certificates(f"{part}.location", pem)
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}


def _client_certificate(values: Values) -> dict[str, str]:
    if store := values.get("ssl.keystore.location"):
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": str(values.get("ssl.keystore.password", "")),
        }
    chain, key = _pem(values, "ssl.certificate"), _pem(values, "ssl.key")
    if chain is None or key is None:
        return {}
    password = str(values.get("ssl.key.password", ""))
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificates("ssl.certificate.location", chain),
        "ssl.keystore.key": private_key("ssl.key.location", key, password),
    }


def _pem(values: Values, part: str) -> str | None:
    if pem := values.get(f"{part}.pem"):
        return str(pem)
    location = values.get(f"{part}.location")
    # librdkafka looks for the system's certificates on "probe"; Java has its own.
    if location is None or location == "probe":
        return None
    return read_pem(f"{part}.location", str(location))
