"""Tokens: asked of a provider (OIDC) or brought by the caller's own function, checked by the broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.integration.kafka.secured import (
    WRONG,
    changed,
    new_topic,
    read,
    refused,
    round_trip,
    write,
)

from penstock.config import Connection
from penstock.embedded import Broker, Security
from penstock.embedded.oidc import Issuer
from penstock.errors import ConfigError, TerminalError
from penstock.kafka.handle import Handle
from penstock.kafka.kafka_errors import translate

pytestmark = pytest.mark.timeout(60)

OIDC = (
    "sasl_oauthbearer_method",
    "sasl_oauthbearer_token_endpoint_url",
    "sasl_oauthbearer_client_id",
    "sasl_oauthbearer_client_secret",
)
TokenSource = Callable[[str], tuple[str, float]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    users = {"alice": "alices-secret"}
    security = Security(protocol="sasl_plaintext", mechanism="OAUTHBEARER", acls=True, users=users)
    with Broker(security=security) as broker:
        yield broker


@pytest.fixture
def bare(broker: Broker) -> Connection:
    """A connection without a provider: the token comes from an oauth_cb."""
    return changed(broker.connection, **dict.fromkeys(OIDC))


def bringing(token: str) -> TokenSource:
    return lambda _config: (token, time.time() + 600)


def test_a_client_that_asks_a_provider_for_its_tokens_does_everything(broker: Broker) -> None:
    round_trip(broker.connection)


def test_tokens_go_over_an_encrypted_connection_too() -> None:
    security = Security(protocol="sasl_ssl", mechanism="OAUTHBEARER")
    with Broker(security=security) as both:
        round_trip(both.connection)


def test_a_client_that_brings_its_own_token_writes_and_reads(
    broker: Broker, bare: Connection
) -> None:
    topic = new_topic(broker.connection)
    asked: list[str] = []

    def own(config: str) -> tuple[str, float]:
        asked.append(config)
        return bringing(broker.token("penstock"))(config)

    write(bare, topic, b"mine", oauth_cb=own)
    assert read(bare, topic, oauth_cb=own) == b"mine"
    assert len(asked) == 2


def test_the_subject_of_the_token_is_the_user_that_acls_bind(
    broker: Broker, bare: Connection
) -> None:
    topic = new_topic(broker.connection)
    with pytest.raises(TerminalError, match="ask for an ACL"):
        write(bare, topic, b"x", oauth_cb=bringing(broker.token("alice")))
    with pytest.raises(TerminalError, match="ask for an ACL"):
        write(broker.connection_as("alice"), topic, b"x")


def test_a_wrong_client_secret_is_reported_immediately_and_never_shown(broker: Broker) -> None:
    message = refused(changed(broker.connection, sasl_oauthbearer_client_secret=WRONG))
    assert "invalid_client" in message
    assert "check sasl.oauthbearer.token.endpoint.url, .client.id and .client.secret" in message


def test_a_provider_that_does_not_answer_is_reported_immediately(broker: Broker) -> None:
    nowhere = "http://127.0.0.1:9/token"
    message = refused(changed(broker.connection, sasl_oauthbearer_token_endpoint_url=nowhere))
    assert "there is no token to log in with" in message


def tokens_refusal(connection: Connection, token: str) -> str:
    """The words with which a token is refused that the caller brought."""
    handle = Handle(connection, "admin", oauth_cb=bringing(token))
    client = AdminClient(handle.settings())
    with pytest.raises(KafkaException) as caught:
        client.list_topics(timeout=5)
    client.poll(0)
    error = translate(caught.value.args[0], "listing topics", handle.brokers, handle.seen)
    assert type(error) is ConfigError
    assert token not in str(error)
    return str(error)


def test_an_expired_token_is_refused(broker: Broker, bare: Connection) -> None:
    message = tokens_refusal(bare, broker.token("penstock", lifetime=-3600))
    assert "the token was refused" in message
    assert "check its signature, expiry, issuer, audience" in message


def test_a_forged_token_is_refused(broker: Broker, bare: Connection) -> None:
    assert "the token was refused" in tokens_refusal(bare, Issuer().token("penstock"))


def test_a_token_whose_claims_were_changed_is_refused(broker: Broker, bare: Connection) -> None:
    header, _, signature = broker.token("alice").split(".")
    claims = broker.token("penstock").split(".")[1]
    assert "the token was refused" in tokens_refusal(bare, f"{header}.{claims}.{signature}")
