"""Wrong options of the source and the sink `jms` are refused, with what is allowed and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError, SetupError
from penstock.imports.jms.jms_import import JmsImport
from penstock.pipeline import Pipeline
from penstock.sinks.jms.jms_sink import JmsSink

URL = "amqp://localhost"
BROKER: list[tuple[dict[str, Any], str]] = [
    ({"url": "tcp://localhost:61616"}, "it begins with amqp:// or amqps://"),
    ({"url": "localhost:5672"}, "is not the address of a broker"),
    ({"url": "amqp://u:hunter22@localhost"}, "give user and password in 'username' and 'password'"),
    ({"url": "amqp://localhost/orders"}, "destinations are options of their own"),
    ({"url": "amqp://localhost:port"}, "has no valid port"),
    ({"url": "amqp://"}, "is not 'scheme://host:port'"),
    ({"username": "penstock"}, "'username' and 'password' belong together"),
    ({"password": "hunter22"}, "'username' and 'password' belong together"),
    ({"ca": "ca.pem"}, "'ca' is for TLS, and the address is amqp://: give amqps://"),
    ({"certificate": "me.pem"}, "'certificate' is for TLS"),
    ({"certificate_key": "me.key"}, "'certificate_key' is given without 'certificate'"),
    ({"timeout": 0}, "greater than 0"),
    ({"timeout": "soon"}, "a duration is a number with ms, s, m, h or d"),
]
SOURCE: list[tuple[dict[str, Any], str]] = [
    ({"queues": []}, "name what to read: 'queues', 'topics' or both"),
    ({"queues": ["a", "a"]}, "a queue is named twice"),
    ({"queues": [""]}, "'' cannot be the name of a queue"),
    ({"queues": [" a"]}, "' a' cannot be the name of a queue"),
    ({"topics": {"t": "s"}}, "'topics' need 'client_id'"),
    ({"topics": {"t": "s", "u": "s"}, "client_id": "c"}, "a name of a subscription is given twice"),
    ({"topics": {"t": ""}, "client_id": "c"}, "'' cannot be the name of a subscription"),
    ({"topics": ["t"]}, "should be a valid dictionary"),
    ({"client_id": "c"}, "'client_id' and 'shared' are for 'topics', and there are none"),
    ({"shared": True}, "'client_id' and 'shared' are for 'topics', and there are none"),
    ({"selector": " "}, "'selector' is empty; leave it out to read every message"),
    ({"key": "id"}, "'id' cannot be the key; allowed: message_id, correlation_id, group_id, none"),
    ({"key": "property:"}, "'property:' cannot be the key"),
    ({"prefetch": 0}, "greater than or equal to 1"),
    ({"max_bytes": 0}, "greater than or equal to 1"),
    ({"queue": "a"}, "did you mean 'queues'?"),
    ({"topic": "{queue}"}, "a topic cannot have {queue} in its name here; allowed: {destination}"),
]
SINK: list[tuple[dict[str, Any], str]] = [
    ({"queue": None}, "give the destination: 'queue' or 'topic', and not both"),
    ({"topic": "t"}, "give the destination: 'queue' or 'topic', and not both"),
    ({"queue": ""}, "at least 1 character"),
    ({"message": "object"}, "should be 'text', 'bytes', 'map' or 'stream'"),
    (
        {"message": "map", "value_format": "csv"},
        "'message: map' is made of JSON: leave 'value_format'",
    ),
    ({"message": "stream", "value_format": "csv"}, "'message: stream' is made of JSON: leave"),
    ({"value_format": "arrow"}, "writes bytes that are not a text: give 'message: bytes'"),
    ({"priority": 10}, "less than or equal to 9"),
    ({"priority": -1}, "greater than or equal to 0"),
    ({"ttl": 0}, "greater than 0"),
    ({"ttl": "60d"}, "less than 4294967"),
    ({"persistant": True}, "did you mean 'persistent'?"),
    ({"destination": "column"}, "did you mean 'destination_column'?"),
]


def refused(definition: dict[str, Any]) -> str:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(name="p", **definition)
    return str(caught.value)


@pytest.mark.parametrize(("options", "message"), BROKER + SOURCE)
def test_a_wrong_option_of_the_source(options: dict[str, Any], message: str) -> None:
    given = {"url": URL, "queues": ["orders"], **options}
    if "topics" in options:
        del given["queues"]
    error = refused({"source": {"jms": given}, "sink": {"kafka": "t"}})
    assert message in error
    assert "hunter22" not in error


@pytest.mark.parametrize(("options", "message"), BROKER + SINK)
def test_a_wrong_option_of_the_sink(options: dict[str, Any], message: str) -> None:
    given = {"url": URL, "queue": "orders", **options}
    error = refused({"source": {"kafka": "t"}, "sink": {"jms": given}})
    assert message in error
    assert "hunter22" not in error


def test_exactly_once_is_refused_with_what_to_do_instead() -> None:
    source = {"jms": {"url": URL, "queues": ["orders"]}}
    error = refused({"source": source, "sink": {"kafka": "t"}, "delivery": "exactly-once"})
    assert "the step 'deduplicate' removes the second one" in error
    sink = {"jms": {"url": URL, "queue": "orders"}}
    error = refused({"source": {"kafka": "t"}, "sink": sink, "delivery": "exactly-once"})
    assert "'duplicate_detection: true' lets Apache Artemis drop messages" in error


@pytest.mark.parametrize(
    ("options", "mechanism"),
    [
        ({}, "ANONYMOUS"),
        ({"username": "a", "password": "hunter22"}, "PLAIN"),
        ({"url": "amqps://h", "certificate": "c.pem"}, "EXTERNAL"),
    ],
)
def test_the_mechanism_follows_from_the_options(options: dict[str, str], mechanism: str) -> None:
    source = JmsImport(**{"url": URL, "queues": "a", **options})
    assert source.broker().mechanism == mechanism
    assert "hunter22" not in repr(source) + str(source.model_dump()) + repr(source.broker())


@pytest.mark.parametrize(
    ("url", "port"), [("amqp://h", 5672), ("amqps://h", 5671), ("amqp://[::1]:99", 99)]
)
def test_ports_have_defaults(url: str, port: int) -> None:
    assert JmsSink(url=url, queue="q").broker().port == port


def test_without_the_client_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.sinks.jms import jms_broker

    monkeypatch.setattr(jms_broker, "find_spec", lambda _name: None)
    source = JmsImport(url=URL, queues="a")
    with pytest.raises(SetupError, match=r"pip install 'penstock\[jms\]'.*python3-dev"):
        source.system().pending({})
    with pytest.raises(SetupError, match="C compiler"):
        JmsSink(url=URL, queue="q").outlet()
