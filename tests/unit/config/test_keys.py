"""The table of keys, held against the librdkafka that is installed."""

import confluent_kafka
import pytest

from penstock.config.keys import KEYS, find_key, unknown_key

SAMPLES = {"int": 1, "float": 0.5, "bool": True, "str": "x", "acks": "all", "brokers": "localhost"}


def sample(key):
    if key.kind in ("enum", "flags"):
        return key.words[0]
    return key.low if key.low is not None else SAMPLES[key.kind]


# The one alias of our own, Java's name: it never reaches librdkafka.
NAMES = {name for key in KEYS for name in (key.name, *key.aliases)} - {"fetch.max.wait.ms"}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_key_is_one_that_librdkafka_knows(name):
    config = {"bootstrap.servers": "localhost", name: "\0"}
    # The value is wrong on purpose: the constructor must fail on the value, or take it, but never
    # on the name; and no client with strange settings stays behind.
    try:
        confluent_kafka.Producer({**config, "security.protocol": "no such"})
    except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
        assert "No such configuration property" not in str(error)


def test_names_and_aliases_are_used_once():
    names = [name for key in KEYS for name in (key.name, *key.aliases)]
    assert len(names) == len(set(names))


def test_every_key_takes_what_it_says_is_allowed():
    for key in KEYS:
        assert key.read(sample(key)) is not None
        assert key.read(str(sample(key))) is not None


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("metadata.broker.list", "bootstrap.servers"),
        ("compression.codec", "compression.type"),
        ("fetch.max.wait.ms", "fetch.wait.max.ms"),
        ("queue.buffering.max.ms", "linger.ms"),
        ("sasl.mechanism", "sasl.mechanisms"),
        ("request.required.acks", "acks"),
        ("message.send.max.retries", "retries"),
        ("fetch.message.max.bytes", "max.partition.fetch.bytes"),
        ("max.in.flight", "max.in.flight.requests.per.connection"),
        ("message.timeout.ms", "delivery.timeout.ms"),
    ],
)
def test_two_names_of_one_key_are_the_same_key(alias, name):
    assert find_key(alias) is find_key(name)


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("session.timeout.ms", 6000, 6000),
        ("session.timeout.ms", "6000", 6000),
        ("session.timeout.ms", " 6000 ", 6000),
        ("session.timeout.ms", 6000.0, 6000),
        ("linger.ms", "0.5", 0.5),
        ("linger.ms", 5, 5),
        ("enable.idempotence", True, True),
        ("enable.idempotence", "true", True),
        ("enable.idempotence", "False", False),
        ("enable.idempotence", 1, True),
        ("enable.idempotence", "0", False),
        ("acks", "all", "all"),
        ("acks", "ALL", "all"),
        ("acks", -1, -1),
        ("acks", "1", 1),
        ("acks", 0, 0),
        ("compression.type", "GZIP", "gzip"),
        ("sasl.mechanisms", "scram-sha-512", "SCRAM-SHA-512"),
        ("security.protocol", "SASL_SSL", "sasl_ssl"),
        ("debug", "broker, topic", "broker,topic"),
        ("debug", ["broker", "cgrp"], "broker,cgrp"),
        ("partition.assignment.strategy", "range,roundrobin", "range,roundrobin"),
        ("group.id", 42, "42"),
        ("client.id", "a", "a"),
    ],
)
def test_values_are_read_in_the_forms_people_write(name, given, read):
    value = find_key(name).read(given)
    assert (value, type(value)) == (read, type(read))


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "session.timeout.ms",
            "soon",
            "'soon' is not allowed; allowed: whole numbers 1 .. 3600000",
        ),
        ("session.timeout.ms", 0, "0 is not allowed; allowed: whole numbers 1 .. 3600000"),
        ("session.timeout.ms", 3_600_001, "allowed: whole numbers 1 .. 3600000"),
        ("session.timeout.ms", 1.5, "1.5 is not allowed"),
        ("session.timeout.ms", True, "True is not allowed"),
        ("session.timeout.ms", None, "None is not allowed"),
        ("session.timeout.ms", "1e3", "'1e3' is not allowed"),
        ("session.timeout.ms", float("nan"), "nan is not allowed"),
        ("linger.ms", -1, "-1 is not allowed; allowed: numbers 0 .. 900000"),
        ("enable.idempotence", "yes", "'yes' is not allowed; allowed: true, false"),
        ("enable.idempotence", 2, "2 is not allowed; allowed: true, false"),
        ("enable.idempotence", 1.0, "1.0 is not allowed"),
        ("acks", "some", "'some' is not allowed; allowed: all, or whole numbers -1 .. 1000"),
        ("compression.type", "rar", "'rar' is not allowed; allowed: none, gzip, snappy, lz4, zstd"),
        (
            "sasl.mechanisms",
            "PLAIN,GSSAPI",
            "'PLAIN,GSSAPI' is not allowed; allowed: GSSAPI, PLAIN",
        ),
        ("isolation.level", 1, "1 is not allowed; allowed: read_uncommitted, read_committed"),
        ("debug", "everything", "'everything' is not allowed"),
        ("debug", [], "[] is not allowed"),
        ("client.id", True, "True is not allowed; allowed: a text"),
        ("client.id", {"a": 1}, "allowed: a text"),
        ("client.id", "", "'' is not allowed; allowed: a text"),
    ],
)
def test_a_wrong_value_says_what_was_given_and_what_is_allowed(name, given, message):
    with pytest.raises(ValueError) as error:
        find_key(name).read(given)
    assert message in str(error.value)


def test_a_wrong_secret_is_not_repeated():
    with pytest.raises(ValueError) as error:
        find_key("sasl.password").read(["hunter2"])
    assert str(error.value) == "******** is not allowed; allowed: a text"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bootstrap.server", "did you mean 'bootstrap.servers'?"),
        ("sesion.timeout.ms", "did you mean 'session.timeout.ms'?"),
        ("max.request.size", "that is the Java name, write 'message.max.bytes'"),
        ("sasl.jaas.config", "Penstock writes JAAS"),
        ("zzz", "allowed are librdkafka's configuration properties"),
        (5, "allowed are librdkafka's configuration properties"),
    ],
)
def test_an_unknown_key_gets_the_nearest_known_one(name, hint):
    assert unknown_key(name).startswith(f"unknown key {name!r}: ")
    assert hint in unknown_key(name)
