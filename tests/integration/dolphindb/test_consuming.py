"""The plugin's functions for consumers do what its documentation says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.integration.dolphindb.documented import documented, documented_error

from penstock import Admin, Connection, Consumer, Producer
from penstock.compat import dolphindb as kafka
from penstock.errors import ConfigError, FormatError, TerminalError
from penstock.testing import eventually, fill

NewTopic = Callable[..., str]
NOTHING = ("No more message", None)
TABLE = pd.DataFrame({"c1": [1, 2, 3], "c2": ["a", "b", "c"]})


def value(answer: Any) -> Any:
    error, message = answer
    assert error == ""
    return message[2]


def committed(connection: Connection, group: str) -> dict[tuple[str, int], int]:
    with Admin(connection) as admin:
        return admin.committed(group)


@documented("consumer", "subscribe", "consumerPoll")
def test_a_poll_gives_an_error_and_a_message(consumer: Consumer, ten: str) -> None:
    kafka.subscribe(consumer, ten)
    before = np.datetime64("now", "ms") - np.timedelta64(1, "h")
    error, message = kafka.consumerPoll(consumer)
    assert message is not None
    assert (error, message[:4]) == ("", (ten, "k0", [0], 0))
    assert message[4].dtype == "M8[ms]"
    assert message[4] > before


@documented("consumerPoll")
@documented_error("no-message")
def test_no_message_in_time_is_an_answer(consumer: Consumer, new_topic: NewTopic) -> None:
    kafka.assign(consumer, new_topic(), 0, 0)
    assert kafka.consumerPoll(consumer, 50) == NOTHING
    assert kafka.consumerPollBatch(consumer, 5, 50) == [NOTHING]
    assert kafka.pollByteStream(consumer, 50) == "No more message"
    assert kafka.pollDict(consumer, 5, 50) == {}
    queue = kafka.getConsumerQueue(consumer)
    assert kafka.queuePoll(queue, 50) == NOTHING
    assert kafka.queuePollBatch(queue, 5, 50) == [NOTHING]
    kafka.setQueueTime(queue, 50)
    with pytest.raises(ConfigError, match="event None has no message"):
        kafka.eventGetMessage(kafka.queueEvent(queue))


@documented("subscribe", "unsubscribe")
def test_a_subscription_of_one_topic_or_several_ends(
    connection: Connection, consumer: Consumer, ten: str, new_topic: NewTopic
) -> None:
    other = new_topic(suffix="other")
    fill(connection, other, ["[10]"])
    kafka.subscribe(consumer, [ten, other])
    found = kafka.consumerPollBatch(consumer, 11)
    assert sorted(value(answer)[0] for answer in found) == list(range(11))
    kafka.unsubscribe(consumer)
    assert (len(kafka.getAssignment(consumer)), consumer.subscription) == (0, [])
    # It ends an assignment, too.
    kafka.assign(consumer, ten, 0, 0)
    kafka.unsubscribe(consumer)
    assert len(kafka.getAssignment(consumer)) == 0


@documented("consumerPoll", "consumerPollBatch")
def test_values_are_read_in_the_format_that_is_named_or_found(
    producer: Producer, consumer: Consumer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    text = kafka.toStdJson(TABLE)
    kafka.produce(producer, topic, "key", text, "PLAIN", 0)
    for each in (1, [1, 2, 3], TABLE):
        kafka.produce(producer, topic, "key", each, "JSON", 0)
    for each in (TABLE, [1, 2, 3], 7, TABLE):
        kafka.produce(producer, topic, "key", each, "DOLPHINDB", 0)
    kafka.subscribe(consumer, topic)
    assert value(kafka.consumerPoll(consumer, None, "PLAIN")) == text
    found = kafka.consumerPollBatch(consumer, 3, 30_000, "JSON")
    assert list(map(value, found)) == [[1], [1, 2, 3], TABLE.to_dict("list")]
    pd.testing.assert_frame_equal(value(kafka.consumerPoll(consumer, 30_000, "DOLPHINDB")), TABLE)
    vector, scalar, table = map(value, kafka.consumerPollBatch(consumer, 3))
    assert (vector.dtype, vector.tolist(), scalar) == (np.int64, [1, 2, 3], 7)
    pd.testing.assert_frame_equal(table, TABLE)


@documented_error("wrong-bytes")
def test_bytes_that_do_not_decode_are_an_error_of_their_message(
    producer: Producer, consumer: Consumer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    kafka.produce(producer, topic, "key", 7, "DOLPHINDB")
    kafka.produce(producer, topic, "key", 8, "DOLPHINDB")
    kafka.assign(consumer, topic, 0, 0)
    error, message = kafka.consumerPoll(consumer, None, "JSON")
    assert error.startswith("not JSON")
    assert message is not None
    assert message[1:4] == ("key", b"\x05\x00\x07\x00\x00\x00\x00\x00\x00\x00", 0)
    assert value(kafka.consumerPoll(consumer)) == 8


@documented_error("unknown-topic")
def test_a_missing_topic_is_reported_by_the_poll(consumer: Consumer, unique: str) -> None:
    kafka.subscribe(consumer, unique)
    kafka.setConsumerTime(consumer, 1000)
    error, message = eventually(
        lambda: (polled := kafka.consumerPoll(consumer)) != NOTHING and polled
    )
    assert (unique in error, message) == (True, None)
    assert len(kafka.getAssignment(consumer)) == 0


@documented_error("poll-interval")
def test_too_long_between_two_polls_is_reported_with_the_librarys_message(
    connection: Connection, config: dict[str, Any], ten: str
) -> None:
    short = {"session.timeout.ms": "6000", "max.poll.interval.ms": "6000"}
    with Admin(connection) as admin, kafka.consumer({**config, **short}) as consumer:
        kafka.subscribe(consumer, ten)
        assert value(kafka.consumerPoll(consumer, 30_000)) == [0]
        # The consumer leaves its group by itself.
        eventually(lambda: not admin.describe_group(config["group.id"]).members)
        error, message = eventually(lambda: (polled := kafka.consumerPoll(consumer))[0] and polled)
    assert "Application maximum poll interval (6000ms) exceeded" in error
    assert message is None


@documented("pollDict")
def test_messages_come_as_a_dictionary(
    producer: Producer, consumer: Consumer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    pairs = {"1": "producer1:i'm producer", "2": "I am a producer", "3": 10086, "4": 123.456}
    for key, each in pairs.items():
        kafka.produce(producer, topic, key, each, False, False, 0)
    kafka.assign(consumer, topic, 0, 0)
    assert kafka.pollDict(consumer, 4) == pairs
    kafka.produce(producer, topic, "5", "no JSON and no DolphinDB", "PLAIN", 0)
    with pytest.raises(FormatError, match="read as dolphindb"):
        kafka.pollDict(consumer, 1)


@documented("pollByteStream")
def test_a_byte_stream_is_the_value_whatever_its_format(
    producer: Producer, consumer: Consumer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    kafka.produce(producer, topic, "key", [1], "JSON")
    kafka.produce(producer, topic, "key", True, "DOLPHINDB")
    kafka.assign(consumer, topic, 0, 0)
    assert kafka.pollByteStream(consumer) == b"[1]"
    assert kafka.pollByteStream(consumer, 30_000) == b"\x01\x00\x01"


@documented("getConsumerTime", "setConsumerTime")
def test_the_time_of_a_poll_can_be_read_and_set(config: dict[str, Any]) -> None:
    with kafka.consumer(config) as consumer:
        assert kafka.getConsumerTime(consumer) == 1000
        kafka.setConsumerTime(consumer, 20)
        assert kafka.getConsumerTime(consumer) == 20
        assert kafka.consumerPoll(consumer) == NOTHING
        with pytest.raises(ConfigError, match="timeout -1 is not allowed"):
            kafka.setConsumerTime(consumer, -1)


@documented("consumer")
@documented_error("no-group")
def test_a_consumer_needs_a_group(config: dict[str, Any]) -> None:
    del config["group.id"]
    with pytest.raises(ConfigError, match=r"group\.id is missing"):
        kafka.consumer(config)


@documented("consumer")
def test_a_consumer_commits_automatically_unless_disabled(
    connection: Connection, config: dict[str, Any], ten: str
) -> None:
    group = config["group.id"]
    with kafka.consumer({**config, "enable.auto.commit": "false"}) as consumer:
        kafka.subscribe(consumer, ten)
        assert len(kafka.consumerPollBatch(consumer, 4, 30_000)) == 4
    assert committed(connection, group) == {}
    with kafka.consumer({**config, "auto.commit.interval.ms": "100"}) as consumer:
        kafka.subscribe(consumer, ten)
        assert len(kafka.consumerPollBatch(consumer, 4, 30_000)) == 4
        eventually(lambda: kafka.consumerPoll(consumer, 1) and committed(connection, group))


@documented("assign", "unassign", "getAssignment")
def test_partitions_are_assigned_and_given_back(
    connection: Connection, consumer: Consumer, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    fill(connection, topic, [f"[{number}]" for number in range(10)], partitions=2)
    kafka.assign(consumer, topic, 1, 3)
    assert value(kafka.consumerPoll(consumer)) == [7]
    table = kafka.getAssignment(consumer)
    assert table.to_dict("list") == {"topic": [topic], "partition": [1], "offset": [-1000]}
    assert consumer.assigned_at == {(topic, 1): 3}
    kafka.assign(consumer, np.array([topic, topic]), np.array([0, 1]), [4, 4])
    found = kafka.consumerPollBatch(consumer, 2)
    assert sorted(value(answer)[0] for answer in found) == [8, 9]
    kafka.unassign(consumer)
    assert kafka.getAssignment(consumer).to_dict("list") == {
        "topic": [],
        "partition": [],
        "offset": [],
    }


@documented("getAssignment", "unassign")
def test_a_subscription_shows_that_no_offset_was_given(consumer: Consumer, ten: str) -> None:
    kafka.subscribe(consumer, ten)
    assert value(kafka.consumerPoll(consumer)) == [0]
    table = kafka.getAssignment(consumer)
    assert table.to_dict("list") == {"topic": [ten], "partition": [0], "offset": [-1000]}
    assert [str(kind) for kind in table.dtypes] == ["object", "int32", "int64"]
    kafka.unassign(consumer)
    assert len(kafka.getAssignment(consumer)) == 0


@documented_error("unequal-vectors")
def test_vectors_must_be_of_one_length(consumer: Consumer, unique: str) -> None:
    for call in (kafka.assign, kafka.commit, kafka.storeOffset):
        with pytest.raises(ConfigError, match="must be of one length; 1, 2 and 1 were given"):
            call(consumer, [unique], [0, 1], [0])
    with pytest.raises(ConfigError, match="topic, partition and offset belong together"):
        kafka.commit(consumer, unique, 0)


@documented("commit", "commitTopic")
@documented_error("nothing-to-commit")
def test_a_commit_takes_what_was_consumed_or_what_is_given(
    connection: Connection, config: dict[str, Any], ten: str
) -> None:
    group = config["group.id"]
    with kafka.consumer({**config, "enable.auto.commit": False}) as consumer:
        kafka.assign(consumer, ten, 0, 3)
        with pytest.raises(TerminalError, match="nothing was read, so there is no offset"):
            kafka.commit(consumer)
        assert len(kafka.consumerPollBatch(consumer, 2, 30_000)) == 2
        kafka.commit(consumer)
        assert committed(connection, group) == {(ten, 0): 5}
        kafka.commit(consumer, ten, 0, 7)
        assert committed(connection, group) == {(ten, 0): 7}
        kafka.commitTopic(consumer, [ten], [0], [2])
        assert committed(connection, group) == {(ten, 0): 2}


@documented_error("nothing-to-commit")
def test_a_consumer_that_commits_by_itself_has_nothing_to_commit_before_it_reads(
    consumer: Consumer, ten: str
) -> None:
    kafka.assign(consumer, ten, 0, 3)
    with pytest.raises(TerminalError, match="nothing was read, so there is no offset"):
        kafka.commit(consumer)


@documented("asyncCommit", "asyncCommitTopic")
def test_a_commit_without_waiting_arrives(
    connection: Connection, config: dict[str, Any], ten: str
) -> None:
    group = config["group.id"]
    with kafka.consumer({**config, "enable.auto.commit": False}) as consumer:
        kafka.assign(consumer, ten, 0, 3)
        assert len(kafka.consumerPollBatch(consumer, 2, 30_000)) == 2
        kafka.asyncCommit(consumer)
        eventually(lambda: committed(connection, group) == {(ten, 0): 5})
        kafka.asyncCommitTopic(consumer, [ten], [0], [1])
        eventually(lambda: committed(connection, group) == {(ten, 0): 1})


@documented("getMemId")
def test_a_member_has_a_name_once_it_has_polled(consumer: Consumer, ten: str) -> None:
    assert kafka.getMemId(consumer) == ""
    kafka.subscribe(consumer, ten)
    assert value(kafka.consumerPoll(consumer)) == [0]
    assert kafka.getMemId(consumer).startswith("rdkafka-")


def test_a_script_that_ends_without_a_close_has_left_its_group_and_kept_its_place(
    connection: Connection, config: dict[str, Any], ten: str
) -> None:
    script = f"""
from penstock.compat import dolphindb as kafka
consumer = kafka.consumer({config})
kafka.subscribe(consumer, "{ten}")
print(len(kafka.consumerPollBatch(consumer, 4, 30_000)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("4\n", "")
    with Admin(connection) as admin:
        assert admin.describe_group(config["group.id"]).members == ()
        assert admin.committed(config["group.id"]) == {(ten, 0): 4}
