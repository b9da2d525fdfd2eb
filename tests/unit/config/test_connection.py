"""A connection: two ways to write it, and every problem named at once."""

import copy
import pickle

import pytest
from pydantic import BaseModel, SecretStr

from penstock.config import Connection
from penstock.errors import ConfigError

SASL = {
    "bootstrap.servers": "kafka",
    "security.protocol": "sasl_ssl",
    "sasl.mechanisms": "SCRAM-SHA-256",
    "sasl.username": "app",
    "sasl.password": "hunter2",
}


def problems(mapping):
    with pytest.raises(ConfigError) as error:
        Connection.from_config(mapping)
    return str(error.value)


def test_keys_and_keywords_write_the_same_connection():
    by_keys = Connection.from_config({**SASL, "linger.ms": "5", "group.id": "g"})
    by_keywords = Connection(
        brokers="kafka:9092",
        security_protocol="sasl_ssl",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="app",
        sasl_password=SecretStr("hunter2"),
        options={"linger.ms": 5, "group.id": "g"},
    )
    assert by_keys == by_keywords
    assert by_keys.brokers == "kafka:9092"
    assert by_keys.security_protocol == "sasl_ssl"
    assert by_keys.sasl_mechanism == "SCRAM-SHA-256"
    assert by_keys.sasl_password.get_secret_value() == "hunter2"
    assert by_keys.options == {"linger.ms": 5, "group.id": "g"}


def test_to_config_is_from_config_undone():
    connection = Connection.from_config({**SASL, "acks": "all", "ssl.keystore.password": "p"})
    assert connection.to_config()["sasl.password"] == "hunter2"
    assert Connection.from_config(connection.to_config()) == connection


def test_it_survives_pickling_and_copying():
    connection = Connection.from_config({**SASL, "ssl.keystore.password": "p"})
    assert pickle.loads(pickle.dumps(connection)) == connection
    assert copy.deepcopy(connection) == connection


def test_it_stands_as_a_field_of_another_model():
    class Job(BaseModel):
        connection: Connection

    connection = Connection(brokers="kafka")
    assert Job(connection=connection).connection is connection
    assert (
        Job.model_validate({"connection": {"metadata.broker.list": "kafka"}}).connection
        == connection
    )


def test_it_cannot_be_changed():
    with pytest.raises(ConfigError, match="cannot be changed"):
        Connection(brokers="a").brokers = "b"


def test_describe_masks_secrets():
    assert Connection.from_config(SASL).describe() == {
        "bootstrap.servers": "kafka:9092",
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "app",
        "sasl.password": "********",
    }


def test_topic_keys_may_stand_in_their_own_mapping():
    connection = Connection.from_config(
        {
            "bootstrap.servers": "a",
            "default.topic.config": {"auto.offset.reset": "smallest", "acks": 1},
        }
    )
    assert connection.options == {"auto.offset.reset": "smallest", "acks": 1}


def test_group_and_poll_size_can_be_asked_for():
    connection = Connection(brokers="a", options={"group.id": "g", "max.poll.records": "50"})
    assert (connection.group_id, connection.max_poll_records) == ("g", 50)
    assert Connection(brokers="a").group_id is None
    assert Connection(brokers="a").max_poll_records is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"bootstrap.server": "a"},
            "unknown key 'bootstrap.server': did you mean 'bootstrap.servers'?",
        ),
        ({}, "bootstrap.servers is missing: give the brokers"),
        ({"brokers": "a", "client.id": None}, "client.id: None is not allowed; allowed: a text"),
        (
            {"brokers": "a", "retries": "many"},
            "retries: 'many' is not allowed; allowed: whole numbers",
        ),
        ({"brokers": "a:x"}, "bootstrap.servers: 'a:x' is not an address"),
        (
            {"brokers": "a", "metadata.broker.list": "b"},
            "metadata.broker.list: given twice with different values",
        ),
        (
            {"brokers": "a", "acks": 1, "default.topic.config": {"acks": 0}},
            "acks: given twice with different values",
        ),
        (
            {"brokers": "a", "default.topic.config": "x"},
            "default.topic.config: str given; allowed: a mapping",
        ),
        (
            {"brokers": "a", "default.topic.config": {"batch.size": 5}},
            "default.topic.config: batch.size is not a topic key",
        ),
        (
            {"brokers": "a", "default.topic.config": {"ack": 1}},
            "unknown key 'ack': did you mean 'acks'?",
        ),
        ({"brokers": "a", "error_cb": print}, "error_cb: a callback is given to the producer"),
        (
            {"brokers": "a", "sasl.username": "u", "sasl.mechanisms": "PLAIN"},
            "sasl.username, sasl.mechanisms not used while security.protocol is plaintext; "
            "set security.protocol to sasl_ssl or sasl_plaintext",
        ),
        (
            {"brokers": "a", "security.protocol": "sasl_plaintext", "ssl.ca.location": "x"},
            "ssl.ca.location not used while security.protocol is sasl_plaintext",
        ),
        (
            {
                "brokers": "a",
                "security.protocol": "sasl_ssl",
                "sasl.mechanisms": "PLAIN",
                "sasl.password": "p",
            },
            "sasl.username is missing: sasl.mechanisms PLAIN needs it",
        ),
        (
            {"brokers": "a", "security.protocol": "sasl_ssl", "sasl.username": "u"},
            "sasl.username not used while sasl.mechanisms is GSSAPI (the default); set sasl.mech",
        ),
        (
            {"brokers": "a", "security.protocol": "sasl_ssl", "sasl.kerberos.keytab": "/k"},
            "sasl.kerberos.principal is missing: sasl.kerberos.keytab needs it",
        ),
        (
            {"brokers": "a", "security.protocol": "ssl", "ssl.key.location": "k"},
            "ssl.key.location without a certificate: give ssl.certificate.location too",
        ),
        (
            {"brokers": "a", "security.protocol": "ssl", "ssl.certificate.location": "k"},
            "ssl.certificate.location without its key: give ssl.key.location too",
        ),
        (
            {"brokers": "a", "security.protocol": "ssl", "ssl.ca.location": "k", "ssl.ca.pem": "x"},
            "ssl.ca.location and ssl.ca.pem are both given; allowed: one of them",
        ),
        (
            {"brokers": "a", "session.timeout.ms": 60_000, "max.poll.interval.ms": 30_000},
            "max.poll.interval.ms is 30000, less than session.timeout.ms, 60000",
        ),
        (
            {"brokers": "a", "enable.idempotence": True, "acks": 1},
            "acks is 1: enable.idempotence needs all",
        ),
        (
            {"brokers": "a", "transactional.id": "t", "acks": 0},
            "acks is 0: transactional.id needs all",
        ),
        (
            {"brokers": "a", "transactional.id": "t", "enable.idempotence": False},
            "enable.idempotence is false: transactional.id needs true",
        ),
        (
            {"brokers": "a", "enable.idempotence": True, "max.in.flight": 6},
            "max.in.flight.requests.per.connection is 6: enable.idempotence allows 1 .. 5",
        ),
        (
            {"brokers": "a", "enable.idempotence": True, "retries": 0},
            "retries is 0: enable.idempotence",
        ),
    ],
)
def test_one_problem_is_named_with_what_was_given_and_what_is_allowed(change, message):
    text = problems(change)
    assert message in text
    assert "\n" not in text


def test_oidc_names_everything_it_lacks():
    text = problems(
        {
            "bootstrap.servers": "a",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
        }
    )
    assert text.splitlines() == [
        "the connection has 3 problems:",
        "  sasl.oauthbearer.token.endpoint.url is missing: sasl.oauthbearer.method oidc needs it",
        "  sasl.oauthbearer.client.id is missing: sasl.oauthbearer.method oidc needs it",
        "  sasl.oauthbearer.client.secret is missing: sasl.oauthbearer.method oidc needs it",
    ]


def test_all_problems_come_at_once_and_none_twice():
    text = problems(
        {
            "bootstrap.server": "a",
            "retries": "many",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.pasword": "hunter2",
        }
    )
    assert text.splitlines() == [
        "the connection has 4 problems:",
        "  unknown key 'bootstrap.server': did you mean 'bootstrap.servers'?",
        "  retries: 'many' is not allowed; allowed: whole numbers 0 .. 2147483647",
        "  unknown key 'sasl.pasword': did you mean 'sasl.password'?",
        "  sasl.username is missing: sasl.mechanisms PLAIN needs it",
    ]


def test_an_unknown_keyword_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown key 'client_idd': did you mean 'client.id'"):
        Connection(brokers="a", client_idd="x")


def test_what_is_no_mapping_is_refused():
    with pytest.raises(
        ConfigError, match="a connection is a mapping of keys to values; list was given"
    ):
        Connection.from_config(["a"])
