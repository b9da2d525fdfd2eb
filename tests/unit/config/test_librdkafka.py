"""What goes to confluent-kafka is taken by its real constructors, which do not connect."""

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from penstock.config import Connection
from penstock.config.keys import find_key
from penstock.errors import ConfigError

BASE = {"bootstrap.servers": "localhost:1", "log_level": 0}
COMMON = [
    {"metadata.broker.list": "localhost:1"},
    {"client.id": "me"},
    {"debug": "generic"},
    {"request.timeout.ms": 1500},
    {"request.timeout.ms": "900000"},
    {"security.protocol": "plaintext"},
]
PRODUCER = [
    {"acks": 0},
    {"acks": "1"},
    {"acks": "all"},
    {"acks": -1},
    {"retries": 3},
    {"max.in.flight.requests.per.connection": "5"},
    {"linger.ms": 0.5},
    {"batch.size": 16384},
    {"batch.num.messages": 100},
    *({"compression.type": codec} for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    *({"compression.codec": codec} for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    {"queue.buffering.max.messages": 1000},
    {"queue.buffering.max.kbytes": 1000},
    {"queue.buffering.max.ms": 10},
    {"enable.idempotence": True},
    {"enable.idempotence": "false"},
    {"transactional.id": "t"},
    {"message.max.bytes": 1_000_000},
    {"default.topic.config": {"acks": "all"}},
]
CONSUMER = [
    {"session.timeout.ms": "30000"},
    {"heartbeat.interval.ms": 3000},
    {"max.poll.interval.ms": "3000000"},
    *(
        {"auto.offset.reset": word}
        for word in ("smallest", "earliest", "beginning", "largest", "latest", "end", "error")
    ),
    {"enable.auto.commit": False},
    {"enable.auto.commit": "true"},
    {"auto.commit.interval.ms": 1000},
    {"enable.auto.offset.store": 0},
    {"isolation.level": "read_committed"},
    {"isolation.level": "read_uncommitted"},
    *(
        {"partition.assignment.strategy": word}
        for word in ("range", "roundrobin", "sticky", "cooperative-sticky", "range,roundrobin")
    ),
    {"fetch.min.bytes": 1},
    {"fetch.wait.max.ms": 250},
    {"fetch.max.wait.ms": 250},
    {"max.partition.fetch.bytes": 1_048_576},
    {"max.poll.records": 500},
    {"default.topic.config": {"auto.offset.reset": "smallest"}},
]
SASL = [
    {"sasl.mechanisms": mechanism, "sasl.username": "u", "sasl.password": 'p"\\'}
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
]


def config(change, role):
    connection = Connection.from_config({**BASE, "group.id": "g", **change})
    return connection.librdkafka(role)


def read(change):
    """The keys under Penstock's names, as they must arrive."""
    flat = change.get("default.topic.config", change)
    return {find_key(name).name: find_key(name).read(value) for name, value in flat.items()}


def accepted_by_consumer(change):
    confluent_kafka.Consumer(config(change, "consumer")).close()


@pytest.mark.parametrize("change", [*COMMON, *PRODUCER], ids=str)
def test_a_producer_takes_it(change):
    settings = config(change, "producer")
    confluent_kafka.Producer(settings)
    assert settings == {**BASE, **read(change)}


@pytest.mark.parametrize("change", [*COMMON, *CONSUMER], ids=str)
def test_a_consumer_takes_it(change):
    accepted_by_consumer(change)
    arrived = set(config(change, "consumer")) - {*BASE, "group.id"}
    translated = {"request.timeout.ms": {"socket.timeout.ms"}, "max.poll.records": set()}
    for name in read(change).keys() - BASE.keys():
        assert arrived == translated.get(name, {name})


@pytest.mark.parametrize("change", [*COMMON, *PRODUCER, *CONSUMER], ids=str)
def test_an_admin_client_takes_it(change):
    settings = config(change, "admin")
    AdminClient(settings)
    assert set(settings) <= {
        *BASE,
        "client.id",
        "debug",
        "socket.timeout.ms",
        "security.protocol",
        "max.in.flight.requests.per.connection",
        "message.max.bytes",
    }


@pytest.mark.parametrize("sasl", SASL, ids=lambda sasl: sasl["sasl.mechanisms"])
@pytest.mark.parametrize("protocol", ["sasl_plaintext", "sasl_ssl", "SASL_SSL"])
def test_logins_are_taken(sasl, protocol):
    change = {"security.protocol": protocol, **sasl}
    confluent_kafka.Producer(config(change, "producer"))
    accepted_by_consumer(change)
    assert config(change, "producer")["sasl.password"] == 'p"\\'


def test_oauth_is_taken():
    change = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.token.endpoint.url": "http://localhost:1/token",
    }
    confluent_kafka.Producer(config(change, "producer"))


def test_kerberos_keys_pass_through_under_their_names():
    kerberos = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafkaAdmin",
        "sasl.kerberos.principal": "kafkaclient@EXAMPLE.COM",
        "sasl.kerberos.keytab": "/path/kafkaclient.keytab",
    }
    assert config(kerberos, "admin") == {**BASE, **kerberos}


def test_pem_files_are_taken(pem):
    change = {
        "security.protocol": "ssl",
        "ssl.ca.location": str(pem.certificate),
        "ssl.certificate.location": str(pem.certificate),
        "ssl.key.location": str(pem.encrypted_key),
        "ssl.key.password": "hunter2",
    }
    confluent_kafka.Producer(config(change, "producer"))
    accepted_by_consumer(change)


@pytest.mark.parametrize(
    "name", ["ssl.ca.location", "ssl.certificate.location", "ssl.key.location"]
)
def test_a_missing_file_is_named(name, pem, tmp_path):
    change = {
        "security.protocol": "ssl",
        "ssl.ca.location": str(pem.certificate),
        "ssl.certificate.location": str(pem.certificate),
        "ssl.key.location": str(pem.key),
        name: str(tmp_path / "nowhere.pem"),
    }
    with pytest.raises(ConfigError) as error:
        config(change, "producer")
    assert f"{name}: there is no file {tmp_path / 'nowhere.pem'}" in str(error.value)


def test_each_role_gets_its_own_keys_only():
    connection = Connection(brokers="a", client_id="me", options={"group.id": "g", "acks": 1})
    common = {"bootstrap.servers": "a:9092", "client.id": "me"}
    assert connection.librdkafka("producer") == {**common, "acks": 1}
    assert connection.librdkafka("consumer") == {**common, "group.id": "g"}
    assert connection.librdkafka("admin") == common
    assert connection.librdkafka() == {**common, "group.id": "g", "acks": 1}


def test_a_consumer_without_a_group_is_refused():
    with pytest.raises(ConfigError, match=r"group.id is missing: a consumer needs"):
        Connection(brokers="a").librdkafka("consumer")


def test_an_unknown_role_is_refused():
    with pytest.raises(
        ConfigError, match="role 'reader' is not known; allowed: producer, consumer, admin"
    ):
        Connection(brokers="a").librdkafka("reader")


def test_the_request_time_out_works_for_both_sides():
    connection = Connection(brokers="a", options={"request.timeout.ms": 4000, "group.id": "g"})
    assert connection.librdkafka("producer")["request.timeout.ms"] == 4000
    assert connection.librdkafka("consumer")["socket.timeout.ms"] == 4000
    assert "request.timeout.ms" not in connection.librdkafka("consumer")


def test_the_poll_size_is_ours_and_not_given_to_librdkafka():
    connection = Connection(brokers="a", options={"max.poll.records": 5, "group.id": "g"})
    assert "max.poll.records" not in connection.librdkafka("consumer")
    assert connection.max_poll_records == 5


def test_words_that_librdkafka_lacks_are_translated():
    connection = Connection(
        brokers="a",
        options={
            "group.id": "g",
            "auto.offset.reset": "none",
            "partition.assignment.strategy": "sticky,cooperative-sticky",
        },
    )
    settings = connection.librdkafka("consumer")
    assert settings["auto.offset.reset"] == "error"
    assert settings["partition.assignment.strategy"] == "cooperative-sticky"


def test_overrides_change_add_and_remove_keys():
    connection = Connection(brokers="a", client_id="me", options={"acks": 1})
    settings = connection.librdkafka(
        "producer", client_id="you", acks=None, linger_ms="5", **{"message.send.max.retries": 2}
    )
    assert settings == {
        "bootstrap.servers": "a:9092",
        "client.id": "you",
        "linger.ms": 5,
        "retries": 2,
    }


def test_overrides_are_checked_like_the_rest():
    with pytest.raises(ConfigError, match=r"unknown key 'group_idd': did you mean 'group.id'"):
        Connection(brokers="a").librdkafka("consumer", group_idd="g")
    with pytest.raises(ConfigError, match=r"acks: 'x' is not allowed"):
        Connection(brokers="a").librdkafka("producer", acks="x")


def test_callbacks_pass_through():
    settings = Connection(brokers="a").librdkafka("producer", error_cb=print, logger=None)
    assert settings["error_cb"] is print


@pytest.mark.parametrize(
    ("password", "problem"),
    [(None, "ssl.key.password is missing"), ("open-sesame", "ssl.key.password is wrong")],
)
@pytest.mark.parametrize("form", ["encrypted_key", "old_encrypted_key"])
def test_a_key_that_does_not_open_is_refused_before_a_client_is_made(pem, form, password, problem):
    connection = Connection(
        brokers="localhost",
        security_protocol="ssl",
        ssl_certificate_location=str(pem.certificate),
        ssl_key_location=str(getattr(pem, form)),
        ssl_key_password=password,
    )
    with pytest.raises(ConfigError, match=rf"ssl.key.location: .*{problem}") as caught:
        connection.librdkafka("producer")
    assert "open-sesame" not in str(caught.value)
