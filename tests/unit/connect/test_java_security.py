"""Security settings of Java clients as those of a connection."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from penstock.connect.java_security import WrongKeyError, certificates_of, connection_keys
from penstock.embedded.java import find_java

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.mark.parametrize(
    ("protocol", "jaas", "found"),
    [
        (
            "SASL_SSL",
            f'{PLAIN} required\n username="ann" password="a\\"b\\\\c; d";',
            {"sasl.username": "ann", "sasl.password": 'a"b\\c; d'},
        ),
        (
            "SASL_PLAINTEXT",
            f"{KERBEROS} required useKeyTab=true keyTab='/etc/c.keytab' principal=\"c@EXAMPLE\";",
            {"sasl.kerberos.principal": "c@EXAMPLE", "sasl.kerberos.keytab": "/etc/c.keytab"},
        ),
        (
            "SASL_SSL",
            f'{OAUTH} required clientId="c" clientSecret="correct-horse" scope="kafka";',
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": "correct-horse",
                "sasl.oauthbearer.scope": "kafka",
            },
        ),
    ],
)
def test_lines_of_jaas(protocol: str, jaas: str, found: dict[str, str]) -> None:
    made, unused = connection_keys({"security.protocol": protocol, "sasl.jaas.config": jaas})
    assert made == {"security.protocol": protocol, **found}
    assert unused == []


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"},
            {"ssl.ca.location": "/ca.pem"},
        ),
        (
            {"ssl.keystore.location": "/c.p12", "ssl.keystore.password": "x"},
            {"ssl.keystore.location": "/c.p12", "ssl.keystore.password": "x"},
        ),
        (
            {
                "ssl.keystore.type": "pem",
                "ssl.keystore.location": "/c.pem",
                "ssl.key.password": "y",
            },
            {
                "ssl.certificate.location": "/c.pem",
                "ssl.key.location": "/c.pem",
                "ssl.key.password": "y",
            },
        ),
    ],
)
def test_stores_of_certificates(given: dict[str, str], found: dict[str, str]) -> None:
    made, unused = connection_keys({"security.protocol": "SSL", **given})
    assert made == {"security.protocol": "SSL", **found}
    assert unused == []


def test_keys_that_the_protocol_does_not_use_are_named() -> None:
    given = {"sasl.mechanism": "PLAIN", "ssl.truststore.location": "/no/such.jks"}
    assert connection_keys(given) == ({}, ["sasl.mechanism", "ssl.truststore.location"])
    given = {"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.3"}
    assert connection_keys(given) == ({"security.protocol": "SSL"}, ["ssl.enabled.protocols"])


@pytest.mark.parametrize(
    ("given", "key", "message"),
    [
        ({"sasl.jaas.config": "nonsense"}, "sasl.jaas.config", "it is not a line of JAAS"),
        (
            {"sasl.jaas.config": "software.amazon.msk.IAMLoginModule required;"},
            "sasl.jaas.config",
            "IAMLoginModule has no equivalent; allowed: PlainLoginModule",
        ),
        ({"ssl.keystore.location": "/c.jks"}, "ssl.keystore.location", "keytool -importkeystore"),
        ({"ssl.truststore.location": "/no/such"}, "ssl.truststore.location", "does not exist"),
    ],
)
def test_what_has_no_equivalent_is_refused(given: dict[str, str], key: str, message: str) -> None:
    with pytest.raises(WrongKeyError, match=message) as refused:
        connection_keys({"security.protocol": "SASL_SSL", **given})
    assert refused.value.key == key


def test_a_truststore_is_read_with_keytool(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    command = [find_java().home / "bin" / "keytool", "-genkeypair", "-keystore", store]
    command += ["-storetype", "JKS", "-storepass", "changeit", "-keypass", "changeit"]
    command += ["-alias", "a", "-dname", "CN=a", "-keyalg", "EC"]
    subprocess.run(command, check=True, capture_output=True)
    pem = certificates_of(str(store), "changeit")
    assert pem.startswith("-----BEGIN CERTIFICATE-----\n")
    assert pem.count("BEGIN CERTIFICATE") == 1
    with pytest.raises(WrongKeyError, match=r"no certificates can be read from .*password"):
        certificates_of(str(store), "wrong-one")
