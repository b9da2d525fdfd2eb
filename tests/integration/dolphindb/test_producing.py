"""The plugin's functions for producers do what its documentation says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.integration.dolphindb.documented import documented, documented_error

from penstock import Connection, Producer
from penstock.compat import dolphindb as kafka
from penstock.errors import ConfigError, FormatError, PenstockError, QueueFullError, SetupError
from penstock.formats import find_format
from penstock.testing import eventually, read_all

NewTopic = Callable[..., str]
UNREACHABLE = {"bootstrap.servers": "127.0.0.1:1"}
TABLE = pd.DataFrame({"c1": [1, 2, 3], "c2": ["a", "b", "c"]})
decode = find_format("dolphindb").decode


def sent(connection: Connection, topic: str) -> list[Any]:
    return [record.value for record in read_all(connection, topic)]


@documented("producer")
@documented_error("background")
def test_a_producer_takes_a_dictionary_and_tells_its_callback_of_errors() -> None:
    errors: list[tuple[str, str, str]] = []
    with kafka.producer(UNREACHABLE, lambda *what: errors.append(what)) as producer:
        assert producer.connection.brokers == "127.0.0.1:1"
        # What a poll serves may also be a line for the log.
        eventually(lambda: (producer.poll(0.1), errors)[1])
    level, name, message = errors[0]
    assert (level, name) in {("WARNING", "_TRANSPORT"), ("ERROR", "_ALL_BROKERS_DOWN")}
    assert "127.0.0.1:1" in message or "brokers" in message


@documented_error("unresolved")
def test_a_host_without_an_address_is_passed_to_the_callback() -> None:
    errors: list[str] = []
    config = {"bootstrap.servers": "no-such-host.invalid:9094"}
    with kafka.producer(config, lambda _level, _name, message: errors.append(message)) as producer:
        eventually(lambda: (producer.poll(0.1), errors)[1])
    assert "Failed to resolve 'no-such-host.invalid:9094'" in errors[0]


@documented_error("no-brokers")
def test_a_client_without_brokers_is_refused() -> None:
    for make in (kafka.producer, kafka.consumer):
        with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
            make({"group.id": "test"})


def test_a_callback_that_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="errCallback 'log' is not allowed"):
        kafka.producer(UNREACHABLE, "log")  # type: ignore[arg-type]


@documented("produce")
def test_each_marshal_type_writes_what_the_documentation_shows(
    connection: Connection, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    kafka.produce(producer, topic, "key", kafka.toStdJson(TABLE), "PLAIN", 0)
    for value in (1, [1, 2, 3], TABLE, {"date": date(2024, 8, 30), "id": 1, "msg": "kafka"}):
        kafka.produce(producer, topic, "key", value, "JSON", 0)
    kafka.produce(producer, topic, "key", TABLE, "dolphindb", 0)
    kafka.producerFlush(producer)
    *texts, binary = sent(connection, topic)
    assert texts == [
        b'[{"c1": 1,"c2": "a"},{"c1": 2,"c2": "b"},{"c1": 3,"c2": "c"}]',
        b"[1]",
        b"[1,2,3]",
        b'{"c1":[1,2,3],"c2":["a","b","c"]}',
        b'{"date":"2024-08-30","id":1,"msg":"kafka"}',
    ]
    assert decode(binary).to_pydict() == TABLE.to_dict("list")


@documented("produce")
def test_the_calls_of_the_earlier_version_have_a_boolean_and_may_have_another(
    connection: Connection, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    kafka.produce(producer, topic, "1", 10086, False, False)
    kafka.produce(producer, topic, 1, 10087, False, 0)
    kafka.produce(producer, topic, np.int64(1), 10088, False, False, 1)
    kafka.produce(producer, topic, "1", 10089, True, False, 1)
    kafka.produce(producer, topic, "1", 10090)
    kafka.producerFlush(producer)
    found = {
        record.value if record.value[:1] == b"[" else decode(record.value): record
        for record in read_all(connection, topic)
    }
    assert set(found) == {10086, 10087, 10088, b"[10089]", 10090}
    assert [found[each].partition for each in (10087, 10088, b"[10089]")] == [0, 1, 1]
    # A number as a key is sent as text, and the same key goes to the same partition.
    assert {record.key for record in found.values()} == {b"1"}
    assert found[10086].partition == found[10090].partition


def test_more_values_than_any_version_takes_are_refused(producer: Producer, unique: str) -> None:
    for more in ((0, 0), (False, 0, 0)):
        with pytest.raises(ConfigError, match=f"{len(more)} values after the format"):
            kafka.produce(producer, unique, "key", 1, False, *more)


@documented_error("plain-needs-text")
def test_plain_sends_text_only(producer: Producer, unique: str) -> None:
    with pytest.raises(FormatError, match="plain sends text and bytes as they are"):
        kafka.produce(producer, unique, "key", 1, "PLAIN")


def test_a_marshal_type_that_is_none_is_refused(producer: Producer, unique: str) -> None:
    with pytest.raises(ConfigError, match="marshalType 'XML' is not allowed; allowed: JSON, DOLP"):
        kafka.produce(producer, unique, "key", 1, "XML")


@documented_error("queue-full")
def test_a_queue_that_stays_full_is_reported_with_the_plugins_message(unique: str) -> None:
    bounds = {"queue.buffering.max.messages": "2", "message.timeout.ms": "2000"}
    producer = kafka.producer({**UNREACHABLE, **bounds})
    producer.queue_timeout = 0.1
    for _ in range(2):
        kafka.produce(producer, unique, "key", "value", "PLAIN")
    with pytest.raises(QueueFullError, match=r"^Local: Queue full: .*queue\.buffering\.max\."):
        kafka.produce(producer, unique, "key", "value", "PLAIN")
    with pytest.raises(PenstockError, match="2 records"):
        producer.close()


@documented("producerFlush")
def test_flush_sends_what_waits(
    connection: Connection, config: dict[str, Any], new_topic: NewTopic
) -> None:
    topic = new_topic()
    with kafka.producer({**config, "linger.ms": "60000"}) as producer:
        kafka.produce(producer, topic, "key", "value", "PLAIN")
        assert len(producer) == 1
        kafka.producerFlush(producer)
        assert sent(connection, topic) == [b"value"]


@documented("getProducerTime", "setProducerTime")
def test_the_time_of_a_request_can_be_read_and_set(producer: Producer) -> None:
    assert kafka.getProducerTime(producer) == 30_000
    kafka.setProducerTime(producer, 500)
    assert kafka.getProducerTime(producer) == 500
    with pytest.raises(ConfigError, match="timeout '1s' is not allowed"):
        kafka.setProducerTime(producer, "1s")  # type: ignore[arg-type]


@documented("getBufferSize", "setBufferSize", "getMessageSize", "setMessageSize")
def test_the_sizes_bound_what_produce_splits_for_every_producer(
    connection: Connection, producer: Producer, new_topic: NewTopic, sizes: None
) -> None:
    topic = new_topic()
    assert (kafka.getBufferSize(), kafka.getMessageSize()) == (900_000, 10_000)
    kafka.setBufferSize(100)
    # A message is never larger than the buffer.
    assert (kafka.getBufferSize(), kafka.getMessageSize()) == (100, 100)
    kafka.setMessageSize(20)
    kafka.produce(producer, topic, "1", [number % 10 for number in range(120)], False, False, 0)
    kafka.producerFlush(producer)
    pieces = sent(connection, topic)
    assert max(map(len, pieces)) <= 20
    assert np.concatenate([decode(piece) for piece in pieces]).tolist() == [*range(10)] * 12
    with pytest.raises(FormatError, match="over the buffer size of 100"):
        kafka.produce(producer, topic, "1", "x" * 200, False)


@documented_error("message-over-buffer")
def test_sizes_that_are_none_are_refused(sizes: None) -> None:
    with pytest.raises(ConfigError, match=r"message size 900001 is not allowed; allowed: 1 \.\. 9"):
        kafka.setMessageSize(900_001)
    with pytest.raises(ConfigError, match="buffer size 0 is not allowed"):
        kafka.setBufferSize(0)
    assert (kafka.getBufferSize(), kafka.getMessageSize()) == (900_000, 10_000)


@documented_error("kerberos")
def test_kerberos_needs_another_build_of_the_library() -> None:
    with pytest.raises(SetupError, match="has no Kerberos"):
        kafka.producer(
            {**UNREACHABLE, "sasl.mechanisms": "GSSAPI", "security.protocol": "sasl_plaintext"}
        )


def test_a_script_that_ends_without_a_flush_has_sent_everything(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    script = f"""
from penstock.compat import dolphindb as kafka
config = {{"metadata.broker.list": "{connection.brokers}", "linger.ms": "60000"}}
kafka.produce(kafka.producer(config), "{topic}", "key", "value", "PLAIN")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sent(connection, topic) == [b"value"]


@documented("produce")
def test_none_is_a_value_and_no_tombstone(
    connection: Connection, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    kafka.produce(producer, topic, "key", None, "JSON")
    kafka.produce(producer, topic, "key", None, "DOLPHINDB")
    producer.produce(topic, "key")
    kafka.producerFlush(producer)
    assert sent(connection, topic) == [b"[null]", bytes(3), None]
    with pytest.raises(FormatError, match="value: plain sends text and bytes"):
        kafka.produce(producer, topic, "key", None, "PLAIN")
