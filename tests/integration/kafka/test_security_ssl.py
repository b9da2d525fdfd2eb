"""Encrypted connections: the broker's certificate, the client's, and the password of its key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.integration.kafka.secured import WRONG, changed, new_topic, refused, round_trip, write

from penstock.embedded import Broker, Security
from penstock.embedded.certificates import Authority
from penstock.errors import ConfigError, TerminalError
from penstock.kafka import Admin

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def plain() -> Iterator[Broker]:
    """Asks clients for no certificate."""
    with Broker(security=Security(protocol="ssl")) as broker:
        yield broker


@pytest.fixture(scope="module")
def strict() -> Iterator[Broker]:
    """Asks for a certificate, whose key has a password, and knows users by it."""
    security = Security(protocol="ssl", client_certificate=True, key_password="geheim", acls=True)
    with Broker(security=security) as broker:
        yield broker


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority that the brokers do not know."""
    return Authority(Path(tmp_path_factory.mktemp("stranger")))


def test_the_brokers_ca_is_enough(plain: Broker) -> None:
    round_trip(plain.connection)


def test_a_broker_whose_ca_is_unknown_is_not_trusted(plain: Broker, stranger: Authority) -> None:
    message = refused(changed(plain.connection, ssl_ca_location=str(stranger.ca)))
    assert "broker certificate could not be verified" in message
    assert "check security.protocol, ssl.ca.location and the certificates" in message


def test_a_client_certificate_with_a_locked_key_logs_in(strict: Broker) -> None:
    assert "ENCRYPTED" in Path(strict.client_settings["ssl.key.location"]).read_text()
    round_trip(strict.connection)


def test_no_certificate_where_one_is_asked_for_is_refused(strict: Broker) -> None:
    none = dict.fromkeys(("ssl_certificate_location", "ssl_key_location", "ssl_key_password"))
    message = refused(changed(strict.connection, **none), timeout=5)
    assert "check ssl.certificate.location (missing, expired, or of a CA unknown there)" in message


def test_an_expired_certificate_is_refused(strict: Broker) -> None:
    strict.renew_certificate("eve", timedelta(days=-1))
    assert "did not take the certificate" in refused(strict.connection_as("eve"), timeout=5)


def test_a_certificate_of_an_unknown_ca_is_refused(strict: Broker, stranger: Authority) -> None:
    made = stranger.client("penstock")
    files = {
        "ssl_certificate_location": str(made.certificate),
        "ssl_key_location": str(made.key),
        "ssl_key_password": None,
    }
    message = refused(changed(strict.connection, **files), timeout=5)
    assert "did not take the certificate" in message


@pytest.mark.parametrize("password", [WRONG, None])
def test_a_key_that_does_not_open_is_reported_before_anything_is_sent(
    strict: Broker, password: str | None
) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.key\.password is (wrong|missing)") as caught:
        Admin(changed(strict.connection, ssl_key_password=password))
    assert WRONG not in str(caught.value)


def test_the_name_in_the_certificate_is_the_user_that_acls_bind(strict: Broker) -> None:
    topic = new_topic(strict.connection)
    with pytest.raises(TerminalError, match="ask for an ACL"):
        write(strict.connection_as("alice"), topic, b"x")
