"""Settings of Kafka's Java client, as connectors have them for another cluster, for a `Connection`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MODULE = re.compile(
    r'\s*([\w.]+)\s+required\s*((?:[\w.]+\s*=\s*(?:"(?:\\.|[^"\\])*"|[^\s;"]+)\s*)*);?\s*'
)
_LISTENER = re.compile(r"^[A-Z][A-Z0-9_]*://")
_OPTION = re.compile(r'([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s;"]+))')
_PEM = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.location": "ssl.certificate.location",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.key.password": "ssl.key.password",
}
_OF_STORES = ("ssl.truststore.password", "ssl.keystore.password")
_TYPES = ("ssl.truststore.type", "ssl.keystore.type")


def plain_addresses(brokers: str) -> str:
    """Return addresses of brokers without names of listeners, as PLAINTEXT, which Java ignores.

    >>> plain_addresses("PLAINTEXT://b:9092, SASL_SSL://[::1]:9093,c:9092")
    'b:9092,[::1]:9093,c:9092'
    """
    return ",".join(_LISTENER.sub("", address.strip()) for address in brokers.split(","))


def cluster_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings under the names of librdkafka; raise ValueError for what it does not have.

    >>> jaas = 'x.PlainLoginModule required username="u" password="p";'
    >>> cluster_settings({"bootstrap.servers": "b:9092", "sasl.jaas.config": jaas})
    {'bootstrap.servers': 'b:9092', 'sasl.username': 'u', 'sasl.password': 'p'}
    """
    found: dict[str, str] = {}
    for key, value in given.items():
        if key == "sasl.jaas.config":
            found |= _credentials(value)
        elif key == "bootstrap.servers":
            found[key] = plain_addresses(value)
        elif key in _PEM:
            _require_pem(key, given)
            found[_PEM[key]] = value
            if key == "ssl.keystore.location":
                found["ssl.key.location"] = value
        elif key == "ssl.endpoint.identification.algorithm":
            found[key] = value or "none"
        elif key not in (*_TYPES, *_OF_STORES):
            found[key] = value.lower() if key == "security.protocol" else value
    return found


def _require_pem(key: str, given: Mapping[str, str]) -> None:
    kind = "ssl.keystore.type" if key.startswith("ssl.key") else "ssl.truststore.type"
    if given.get(kind, "JKS").upper() != "PEM":
        raise ValueError(
            f"{key}: a key store of Java cannot be read; give a PEM file, and {kind}=PEM"
        )


def _credentials(line: str) -> dict[str, str]:
    found = _MODULE.fullmatch(line)
    options = {m[1]: m[2] or m[3] or "" for m in _OPTION.finditer(found[2])} if found else {}
    if (
        found
        and found[1].endswith(("PlainLoginModule", "ScramLoginModule"))
        and "username" in options
    ):
        unescaped = {name: re.sub(r"\\(.)", r"\1", value) for name, value in options.items()}
        return {
            "sasl.username": unescaped["username"],
            "sasl.password": unescaped.get("password", ""),
        }
    raise ValueError(
        "the value of sasl.jaas.config cannot be read; allowed are PlainLoginModule and ScramLoginModule "
        "with username and password; for others give the settings of librdkafka, as "
        "sasl.oauthbearer.method or sasl.kerberos.principal"
    )
