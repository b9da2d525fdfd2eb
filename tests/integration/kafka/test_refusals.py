"""What a broker that asks for a password, and one that dies, look like to the client."""

from collections.abc import Iterator

import pytest

from penstock.config import Connection
from penstock.embedded import Broker
from penstock.embedded.security import Security
from penstock.errors import BrokerUnavailableError, ConfigError, TerminalError
from penstock.kafka import Admin, GroupOffsets, Producer

LONG = 60.0  # a refusal must not wait for the time-out: these tests would run into their own


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    users = {"alice": "wonderland"}
    security = Security(protocol="sasl_plaintext", acls=True, users=users)
    with Broker(security=security) as broker:
        yield broker


@pytest.mark.timeout(30)
def test_a_wrong_password_is_reported_immediately_and_never_shown(guarded: Broker) -> None:
    settings = guarded.connection.librdkafka() | {"sasl.password": "open-sesame"}
    with pytest.raises(ConfigError, match=r"check sasl.mechanisms, sasl.username") as caught:
        Admin(Connection.from_config(settings), timeout=LONG).topics()
    assert guarded.bootstrap_servers in str(caught.value)
    assert "open-sesame" not in str(caught.value)


def test_a_user_without_a_right_is_advised_to_request_it(guarded: Broker) -> None:
    with Admin(guarded.connection) as admin:
        admin.create_topic("secret")
    alice = guarded.connection_as("alice")
    with pytest.raises(TerminalError, match="ask for an ACL"):
        Admin(alice).create_topic("hers")
    producer = Producer(alice)
    producer.produce("secret", value="x")
    with pytest.raises(TerminalError, match=r"'secret'.*ask for an ACL"):
        producer.flush(20)


@pytest.mark.timeout(30)
def test_no_encryption_where_the_broker_wants_a_password_is_an_error(guarded: Broker) -> None:
    plain = Connection.from_config({"bootstrap.servers": guarded.bootstrap_servers})
    with pytest.raises(BrokerUnavailableError, match=guarded.bootstrap_servers):
        Admin(plain, timeout=2).topics()


def test_a_client_outlives_its_broker() -> None:
    with Broker() as broker, Admin(broker.connection, timeout=3) as admin:
        admin.create_topic("t")
        with GroupOffsets(broker.connection, "g", timeout=3) as offsets:
            offsets.commit({("t", 0): 0})
            broker.kill()
            with pytest.raises(BrokerUnavailableError, match="committing"):
                offsets.commit({("t", 0): 0})
            with pytest.raises(BrokerUnavailableError, match="listing"):
                admin.topics()
            broker.restart()
            commit_again(offsets)
            assert admin.committed("g") == {("t", 0): 0}


def commit_again(offsets: GroupOffsets, tries: int = 10) -> None:
    for left in reversed(range(tries)):
        try:
            return offsets.commit({("t", 0): 0})
        except BrokerUnavailableError:
            if not left:
                raise
    return None
