"""Names and passwords: each mechanism lets the right one in, and tells the wrong one what to check."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer as BareProducer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.integration.kafka.secured import WRONG, changed, new_topic, refused, round_trip, write

from penstock.config import Connection
from penstock.embedded import Broker, Security
from penstock.errors import TerminalError
from penstock.kafka import Admin, Consumer
from penstock.kafka.handle import Handle

pytestmark = pytest.mark.timeout(60)

SCRAM = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
MECHANISMS = ["PLAIN", *SCRAM]
ALICES = 'a"b\\c ü$'
ENTRY = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One listener with all three mechanisms, and the same users in each."""
    security = Security(protocol="sasl_plaintext", acls=True, users={"alice": ALICES})
    more = {f"listener.name.client.{name.lower()}.sasl.jaas.config": ENTRY for name in SCRAM}
    mechanisms = ",".join(MECHANISMS)
    with Broker(
        security=security,
        properties={"listener.name.client.sasl.enabled.mechanisms": mechanisms, **more},
    ) as broker:
        add_scram_users(broker)
        yield broker


def add_scram_users(broker: Broker) -> None:
    client = AdminClient(broker.connection.librdkafka("admin"))
    owner = broker.client_settings["sasl.password"]
    wanted = [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(kind, 4096), secret.encode())
        for user, secret in (("penstock", owner), ("alice", ALICES))
        for kind in SCRAM.values()
    ]
    # One request may change a user once only.
    for each in wanted:
        for done in client.alter_user_scram_credentials([each]).values():
            done.result(20)


def using(mechanism: str, connection: Connection, **changes: str) -> Connection:
    return changed(connection, sasl_mechanisms=mechanism, **changes)


@pytest.mark.by_turns
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_password_does_everything(broker: Broker, mechanism: str) -> None:
    round_trip(using(mechanism, broker.connection))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_password_of_odd_characters_is_taken_as_it_is(broker: Broker, mechanism: str) -> None:
    alice = using(mechanism, broker.connection_as("alice"))
    with Admin(alice) as admin:
        assert admin.topics() == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_reported_immediately_and_never_shown(
    broker: Broker, mechanism: str
) -> None:
    message = refused(using(mechanism, broker.connection, sasl_password=WRONG))
    assert "check sasl.mechanisms, sasl.username and sasl.password" in message


def test_a_mechanism_that_the_broker_does_not_offer_is_reported(broker: Broker) -> None:
    settings = {
        "sasl_mechanisms": "OAUTHBEARER",
        "sasl_username": None,
        "sasl_password": None,
        "sasl_oauthbearer_method": "oidc",
        "sasl_oauthbearer_client_id": "alice",
        "sasl_oauthbearer_client_secret": WRONG,
        "sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:9/token",
    }
    message = refused(changed(broker.connection, **settings))
    assert "there is no token to log in with" in message


def test_encryption_and_a_password_go_together() -> None:
    security = Security(protocol="sasl_ssl", mechanism="SCRAM-SHA-512")
    with Broker(security=security) as both:
        round_trip(both.connection)
        assert "sasl.password" in refused(changed(both.connection, sasl_password=WRONG))


def test_a_topic_without_an_acl_can_be_neither_written_nor_read(broker: Broker) -> None:
    topic = new_topic(broker.connection)
    alice = broker.connection_as("alice")
    with pytest.raises(TerminalError, match=r"TOPIC_AUTHORIZATION_FAILED.*ask for an ACL"):
        write(alice, topic, b"x")
    with (
        pytest.raises(TerminalError, match=r"_AUTHORIZATION_FAILED.*ask for an ACL"),
        Consumer(alice) as consumer,
    ):
        consumer.assign({(topic, 0): 0})
        consumer.poll(20)


def test_a_group_without_an_acl_cannot_be_joined(broker: Broker) -> None:
    topic = new_topic(broker.connection)
    with (
        pytest.raises(TerminalError, match=r"GROUP_AUTHORIZATION_FAILED.*ask for an ACL"),
        Consumer(broker.connection_as("alice"), "their-group") as consumer,
    ):
        consumer.subscribe(topic)
        consumer.poll(20)


def test_a_transactional_id_without_an_acl_cannot_be_used(broker: Broker) -> None:
    alice = broker.connection_as("alice")
    client = BareProducer(alice.librdkafka("producer", transactional_id="theirs"))
    refusal = r"TRANSACTIONAL_ID_AUTHORIZATION_FAILED.*ask for an ACL"
    with (
        pytest.raises(TerminalError, match=refusal),
        Handle(alice, "producer").translated("beginning"),
    ):
        client.init_transactions(20)
