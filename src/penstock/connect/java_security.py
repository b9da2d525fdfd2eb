"""Security settings of Kafka's Java clients, as a worker's properties have them, for a connection."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.config.secrets import remember_secret
from penstock.embedded.java import find_java

_JAAS = re.compile(r"\s*(\S+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", re.DOTALL)
_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;]+))""")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PASSWORD = "PENSTOCK_STORE_PASSWORD"  # noqa: S105 - the name of a variable
_PLAIN = {"username": "sasl.username", "password": "sasl.password"}
_KERBEROS = {
    "principal": "sasl.kerberos.principal",
    "keyTab": "sasl.kerberos.keytab",
    "serviceName": "sasl.kerberos.service.name",
}
_OAUTH = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_MODULES = {
    "PlainLoginModule": _PLAIN,
    "ScramLoginModule": _PLAIN,
    "Krb5LoginModule": _KERBEROS,
    "OAuthBearerLoginModule": _OAUTH,
}
PREFIXES = ("security.", "sasl.", "ssl.")
"""The beginnings of the keys that are about security."""
_SAME = ("sasl.kerberos.service.name", "sasl.oauthbearer.token.endpoint.url", "ssl.key.password")
_STORES = ("ssl.truststore.", "ssl.keystore.")


class WrongKeyError(ValueError):
    """A key whose value cannot be used."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(why)
        self.key = key


def connection_keys(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return keys of a connection, and the keys that have no equivalent in it.

    >>> jaas = 'org.example.ScramLoginModule required username="ann" password="horse";'
    >>> given = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}
    >>> found, unused = connection_keys({"security.protocol": "SASL_PLAINTEXT", **given})
    >>> found["sasl.username"], found["sasl.password"]
    ('ann', 'horse')
    """
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    made = {"security.protocol": given["security.protocol"]} if "security.protocol" in given else {}
    unused = [key for key in given if key != "security.protocol"]
    for prefix, wanted, read in (
        ("sasl.", protocol.startswith("SASL"), _sasl),
        ("ssl.", protocol.endswith("SSL"), _tls),
    ):
        if wanted:
            own = {key: value for key, value in given.items() if key.startswith(prefix)}
            found, used = read(own)
            made |= found
            unused = [key for key in unused if key not in used]
    return made, unused


def _sasl(given: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    made = {key: given[key] for key in ("sasl.mechanism", *_SAME) if key in given}
    if jaas := given.get("sasl.jaas.config"):
        made |= _jaas(jaas)
    return made, {*made, "sasl.jaas.config"}


def _jaas(text: str) -> dict[str, str]:
    match = _JAAS.fullmatch(text)
    if match is None:
        raise WrongKeyError(
            "sasl.jaas.config", 'it is not a line of JAAS; write it as in MODULE required a="b";'
        )
    names = _MODULES.get(match[1].rpartition(".")[2])
    if names is None:
        raise WrongKeyError(
            "sasl.jaas.config",
            f"the login module {match[1]} has no equivalent; allowed: {', '.join(_MODULES)}",
        )
    options = {
        found[1]: re.sub(r"\\(.)", r"\1", found[2] or found[3] or found[4] or "")
        for found in _OPTION.finditer(match[2])
    }
    made = {key: options[name] for name, key in names.items() if name in options}
    for secret in ("sasl.password", "sasl.oauthbearer.client.secret"):
        if secret in made:
            remember_secret(made[secret])
    return made | ({"sasl.oauthbearer.method": "oidc"} if names is _OAUTH else {})


def _tls(given: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    made: dict[str, str] = {}
    if "ssl.endpoint.identification.algorithm" in given:
        # Empty in Java, `none` in librdkafka: names of brokers are not checked.
        name = "ssl.endpoint.identification.algorithm"
        made[name] = given[name].strip() or "none"
    made |= _truststore(given) | _keystore(given)
    if password := given.get("ssl.key.password"):
        made["ssl.key.password"] = password
    stores = {key for key in given if key.startswith(_STORES)}
    return made, {"ssl.key.password", "ssl.endpoint.identification.algorithm", *stores}


def _truststore(given: Mapping[str, str]) -> dict[str, str]:
    if pem := given.get("ssl.truststore.certificates"):
        return {"ssl.ca.pem": pem}
    location = given.get("ssl.truststore.location")
    if not location:
        return {}
    if _kind(given, "ssl.truststore.") == "PEM":
        return {"ssl.ca.location": location}
    return {"ssl.ca.pem": certificates_of(location, given.get("ssl.truststore.password", ""))}


def certificates_of(location: str, password: str) -> str:
    """Return the certificates of a JKS or PKCS12 file as PEM, read by Java's own keytool."""
    key = "ssl.truststore.location"
    if not Path(location).is_file():
        raise WrongKeyError(key, f"the file {location} does not exist; give a truststore")
    program = find_java().home / "bin" / "keytool"
    command: list[str | Path] = [
        program,
        "-list",
        "-rfc",
        "-keystore",
        location,
        "-storepass:env",
        _PASSWORD,
    ]
    environment = {**os.environ, _PASSWORD: password, "LC_ALL": "C"}
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    found = _CERTIFICATE.findall(ended.stdout)
    if not found:
        said = (ended.stdout + ended.stderr).strip().partition("\n")[0][:300]
        raise WrongKeyError(
            key, f"no certificates can be read from {location}: {said or 'it is empty'}"
        )
    return "\n".join(found) + "\n"


def _keystore(given: Mapping[str, str]) -> dict[str, str]:
    if pem := given.get("ssl.keystore.certificate.chain"):
        return {"ssl.certificate.pem": pem, "ssl.key.pem": given.get("ssl.keystore.key", "")}
    location = given.get("ssl.keystore.location")
    if not location:
        return {}
    return _KEYSTORES.get(_kind(given, "ssl.keystore."), _no_keystore)(
        location, given.get("ssl.keystore.password", "")
    )


def _pem_file(location: str, _password: str) -> dict[str, str]:
    return {"ssl.certificate.location": location, "ssl.key.location": location}


def _pkcs12(location: str, password: str) -> dict[str, str]:
    return {"ssl.keystore.location": location, "ssl.keystore.password": password}


def _no_keystore(location: str, _password: str) -> dict[str, str]:
    raise WrongKeyError(
        "ssl.keystore.location",
        f"{location} is a keystore of the type JKS; allowed: PKCS12, PEM. Convert it with 'keytool "
        f"-importkeystore -srckeystore {location} -destkeystore client.p12 -deststoretype PKCS12', and "
        "set ssl.keystore.type=PKCS12",
    )


_KEYSTORES: dict[str, Callable[[str, str], dict[str, str]]] = {"PEM": _pem_file, "PKCS12": _pkcs12}


def _kind(given: Mapping[str, str], prefix: str) -> str:
    """Return the type of a store: the given one, else by the name of the file, else Java's default."""
    name = given.get(f"{prefix}location", "").lower()
    guessed = "PKCS12" if name.endswith((".p12", ".pfx")) else "JKS"
    return given.get(f"{prefix}type", guessed).strip().upper()
