"""Every kind of listener takes a client's records and gives them back, and keeps strangers out."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.integration.embedded.conftest import QUIET, read, send

from penstock.config import Connection
from penstock.embedded import Broker, Security

KINDS = {
    "ssl": Security(protocol="ssl"),
    "sasl_plaintext-PLAIN": Security(protocol="sasl_plaintext", users={"eve": 'a"b\\c ü$'}),
    "sasl_ssl-PLAIN": Security(protocol="sasl_ssl"),
    "sasl_plaintext-SCRAM-SHA-256": Security(protocol="sasl_plaintext", mechanism="SCRAM-SHA-256"),
}


def test_plaintext_round_trip(broker: Broker, unique: str) -> None:
    send(broker.connection, unique, [b"one", b"two"])
    assert read(broker.connection, unique, 2) == [b"one", b"two"]


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind: str) -> None:
    with Broker(security=KINDS[kind]) as broker:
        send(broker.connection, "t", [b"one", b"two"])
        assert read(broker.connection, "t", 2) == [b"one", b"two"]
        for user in KINDS[kind].users:
            assert read(broker.connection_as(user), "t", 2, group=user) == [b"one", b"two"]


def refusal(connection: Connection, **changes: str) -> int:
    """The code of the error with which a changed connection is refused."""
    codes: list[int] = []
    settings = connection.librdkafka("admin", **changes) | QUIET
    client = AdminClient(settings | {"error_cb": lambda error: codes.append(error.code())})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)
    client.poll(0)
    return next(code for code in codes if code != KafkaError._ALL_BROKERS_DOWN)


@pytest.fixture(scope="module")
def guarded() -> object:
    """Encrypted, with SCRAM-SHA-512 and ACLs: the most that clients may meet."""
    users = {"alice": "alice-secret", "bob": "bob-secret"}
    security = Security(protocol="sasl_ssl", mechanism="SCRAM-SHA-512", users=users, acls=True)
    with Broker(security=security) as broker:
        yield broker


def test_sasl_ssl_with_scram_512_round_trip(guarded: Broker, unique: str) -> None:
    send(guarded.connection, unique, [b"one"])
    assert read(guarded.connection, unique, 1) == [b"one"]


def test_a_wrong_password_is_refused(guarded: Broker) -> None:
    code = refusal(guarded.connection, **{"sasl.password": "wrong"})
    assert code == KafkaError._AUTHENTICATION


def test_acls_deny_what_they_do_not_allow(guarded: Broker, unique: str) -> None:
    send(guarded.connection, unique, [b"one"])
    codes: list[int] = []
    producer = Producer(guarded.connection_as("bob").librdkafka("producer") | QUIET)
    producer.produce(unique, b"x", on_delivery=lambda error, _: codes.append(error.code()))
    producer.flush(30)
    assert codes == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


def test_an_acl_lets_its_user_in(guarded: Broker, unique: str) -> None:
    send(guarded.connection, unique, [b"one"])
    admin = AdminClient(guarded.connection.librdkafka("admin") | QUIET)
    rule = AclBinding(
        ResourceType.TOPIC,
        unique,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    for done in admin.create_acls([rule]).values():
        done.result(30)
    send(guarded.connection_as("alice"), unique, [b"two"])
    assert read(guarded.connection, unique, 2, group=unique) == [b"one", b"two"]


def test_a_client_certificate_is_asked_for_and_names_its_user() -> None:
    security = Security(protocol="ssl", client_certificate=True, key_password="geheim", acls=True)
    with Broker(security=security) as broker:
        send(broker.connection, "t", [b"one"])
        assert read(broker.connection, "t", 1) == [b"one"]
        ca = broker.client_settings["ssl.ca.location"]
        stranger = Connection.from_config(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "ssl",
                "ssl.ca.location": ca,
            }
        )
        assert refusal(stranger) in {KafkaError._SSL, KafkaError._TRANSPORT}
