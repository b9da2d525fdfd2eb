"""Broker addresses in every form that people write them."""

import pytest

from penstock.config.brokers import parse_brokers


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("localhost", "localhost:9092"),
        ("localhost:9093", "localhost:9093"),
        (" a , b:1 ,", "a:9092,b:1"),
        ("192.168.100.11:9092,192.168.100.12", "192.168.100.11:9092,192.168.100.12:9092"),
        ("[::1]", "[::1]:9092"),
        ("[2001:db8::1]:9094", "[2001:db8::1]:9094"),
        ("::1", "[::1]:9092"),
        ("fe80::1%eth0", "[fe80::1%eth0]:9092"),
        (["a", "b:2"], "a:9092,b:2"),
        (("a",), "a:9092"),
        ("kafka_1.example-x.com", "kafka_1.example-x.com:9092"),
    ],
)
def test_addresses_get_their_port(given, read):
    assert parse_brokers(given) == read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "no broker is given"),
        (" , ", "no broker is given"),
        ([], "no broker is given"),
        (5, "5 is not allowed; allowed: a text, or a list of texts"),
        (["a", 5], "allowed: a text, or a list of texts"),
        ("host:0", "'host:0' has port 0; allowed: 1 .. 65535"),
        ("host:70000", "has port 70000"),
        ("host:abc", "'host:abc' is not an address; allowed: host, host:port, [ipv6]:port"),
        ("a b", "'a b' is not an address"),
        ("[zz]:1", "'[zz]:1' is not an address"),
        ("PLAINTEXT://host:9092", "the protocol goes into security.protocol"),
    ],
)
def test_what_is_no_address_is_refused_with_what_is_allowed(given, message):
    with pytest.raises(ValueError) as error:
        parse_brokers(given)
    assert message in str(error.value)


def test_credentials_in_an_address_are_not_repeated():
    with pytest.raises(ValueError) as error:
        parse_brokers("kafka://app:hunter2@host:9092")
    assert "hunter2" not in str(error.value)
