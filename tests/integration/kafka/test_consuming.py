"""What a consumer promises, and its asyncio twin with it."""

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.config import Connection
from penstock.errors import (
    ConfigError,
    FormatError,
    NoMessageError,
    PenstockError,
    TerminalError,
    WakeupError,
)
from penstock.kafka import Admin, Consumer, Producer
from penstock.record import Record
from penstock.testing import eventually, fill

from .twins import Twins

NewTopic = Callable[..., str]
FROM_START = {"auto_offset_reset": "earliest"}


@pytest.fixture
def ten(connection: Connection, new_topic: NewTopic) -> str:
    """A topic of one partition with ten records: 0 to 9, a second apart."""
    topic = new_topic()
    with Producer(connection) as producer:
        for number in range(10):
            producer.produce(topic, f"k{number}", str(number), timestamp=1000 + number * 1000)
    return topic


def drained(consumer: Any, count: int) -> list[Record]:
    found: list[Record] = []
    eventually(lambda: found.extend(consumer.poll_batch(count - len(found))) or len(found) >= count)
    return found


# -- subscribe


def test_a_subscription_reads_a_topic_and_leaves_the_group_at_close(
    twins: Twins, connection: Connection, admin: Admin, group: str, ten: str
) -> None:
    with twins.consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(ten)
        found = drained(consumer, 10)
        assert consumer.subscription == [ten]
        assert consumer.assignment == {(ten, 0)}
    assert [int(record.value) for record in found] == list(range(10))
    # At once: not when the session would have timed out.
    assert admin.describe_group(group).members == ()


def test_a_new_subscription_replaces_the_old_one(
    twins: Twins, connection: Connection, group: str, new_topic: NewTopic
) -> None:
    first, second = new_topic(), new_topic()
    fill(connection, first, ["a"])
    fill(connection, second, ["b"])
    with twins.consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe([first])
        assert [r.value for r in drained(consumer, 1)] == [b"a"]
        consumer.subscribe([second])
        assert [r.value for r in drained(consumer, 1)] == [b"b"]
        assert consumer.assignment == {(second, 0)}


@pytest.mark.parametrize("compiled", [True, False])
def test_a_pattern_subscribes_to_the_topics_it_matches(
    twins: Twins, connection: Connection, group: str, admin: Admin, unique: str, compiled: bool
) -> None:
    for name in ("a-1", "a-2", "b-1"):
        fill(connection, f"{unique}-{name}", [name])
    text = f"{unique}-a-[0-9]"
    with twins.consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(re.compile(text) if compiled else f"^{text}$")
        assert sorted(r.value for r in drained(consumer, 2)) == [b"a-1", b"a-2"]
        assert {topic for topic, _ in consumer.assignment} == {f"{unique}-a-1", f"{unique}-a-2"}


def test_unsubscribe_ends_a_subscription_and_an_assignment(
    twins: Twins, connection: Connection, group: str, ten: str
) -> None:
    with twins.consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(ten)
        drained(consumer, 1)
        consumer.unsubscribe()
        assert (consumer.subscription, consumer.assignment) == ([], set())
        consumer.assign(ten, 0, 0)
        assert consumer.assignment == {(ten, 0)}
        consumer.unsubscribe()
        assert consumer.assignment == set()


def test_an_assignment_after_a_subscription_is_read(
    twins: Twins, connection: Connection, group: str, ten: str
) -> None:
    revoked: list[Any] = []
    with twins.consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(ten, on_revoked=lambda _, partitions: revoked.extend(partitions))
        drained(consumer, 1)
        consumer.unsubscribe()
        assert revoked == [(ten, 0)]  # and not when the assignment is read, which it would end
        consumer.assign(ten, 0, 0)
        assert len(drained(consumer, 10)) == 10
        assert consumer.assignment == {(ten, 0)}


@pytest.mark.parametrize("own", [{}, {"enable_auto_commit": True}, {"enable_auto_commit": False}])
def test_records_that_wait_at_the_end_of_a_subscription_are_not_committed(
    connection: Connection, group: str, ten: str, own: dict[str, Any]
) -> None:
    with Consumer(connection, group, **FROM_START, **own) as consumer:
        consumer.subscribe(ten, on_revoked=lambda gone, _: gone.commit())
        assert len(drained(consumer, 1)) == 1
        consumer.unsubscribe()
        assert consumer.committed([(ten, 0)]) == {(ten, 0): 1}


# -- assign


def test_assign_takes_a_mapping_scalars_or_vectors(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    fill(connection, topic, [str(number) for number in range(10)], partitions=2)
    with twins.consumer(connection) as consumer:
        consumer.assign({(topic, 0): 4})
        assert [r.value for r in drained(consumer, 1)] == [b"8"]
        consumer.assign(topic, 1, 4)
        assert [r.value for r in drained(consumer, 1)] == [b"9"]
        consumer.assign([topic, topic], [0, 1], [4, 4])
        assert sorted(r.value for r in drained(consumer, 2)) == [b"8", b"9"]
        consumer.unassign()
        assert consumer.assignment == set()


def test_the_offsets_of_an_assignment_are_reported_until_it_ends(
    twins: Twins, connection: Connection, group: str, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    fill(connection, topic, ["0"])
    with twins.consumer(connection, group, **FROM_START) as consumer:
        consumer.assign({(topic, 0): 4, (topic, 1): 0})
        assert consumer.assigned_at == {(topic, 0): 4, (topic, 1): 0}
        consumer.unassign()
        assert consumer.assigned_at == {}
        # When the group assigns partitions, no start offsets are given.
        consumer.subscribe(topic)
        assert len(drained(consumer, 1)) == 1
        assert consumer.assigned_at == {(topic, 0): -1000, (topic, 1): -1000}


def test_vectors_of_different_lengths_are_refused(twins: Twins, connection: Connection) -> None:
    with (
        twins.consumer(connection) as consumer,
        pytest.raises(ConfigError, match="of one length; 2, 1 and 1 were given"),
    ):
        consumer.assign(["a", "b"], [0], [0])


# -- poll


def test_no_message_in_time_is_a_plain_outcome(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    with twins.consumer(connection) as consumer:
        consumer.assign(new_topic(), 0, 0)
        assert consumer.poll(0.1) is None
        assert consumer.poll_batch(3, 0.1) == []
        assert consumer.poll_mapping(3, 0.1) == {}
        assert consumer.poll_value(0.1) is None
        assert consumer.poll_table(3, 0.1).num_rows == 0
        with pytest.raises(NoMessageError, match=r"no message came within 0\.1 s"):
            consumer.read(0.1)


def test_a_batch_waits_for_its_records_until_the_time_is_up(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.consumer(connection) as consumer:
        consumer.assign(topic, 0, 0)
        later = threading.Timer(0.5, fill, (connection, topic, ["a", "b"]))
        later.start()
        assert [r.value for r in consumer.poll_batch(2, 30)] == [b"a", b"b"]
        later.join()


def test_the_forms_of_poll_read_on_one_after_the_other(
    twins: Twins, connection: Connection, ten: str
) -> None:
    with twins.consumer(connection) as consumer:
        consumer.assign(ten, 0, 0)
        assert consumer.poll(30).value == b"0"
        assert consumer.poll_value() == b"1"
        assert consumer.poll_mapping(2) == {b"k2": b"2", b"k3": b"3"}
        assert consumer.read(30).value == b"4"
        assert consumer.poll_table(2)["value"].to_pylist() == [b"5", b"6"]
        for record in consumer:
            assert record.value == b"7"
            break
        assert [r.value for r in consumer.poll_batch(5, 0.5)] == [b"8", b"9"]


def test_max_poll_records_bounds_a_batch(twins: Twins, connection: Connection, ten: str) -> None:
    few = Connection.from_config({**connection.to_config(), "max.poll.records": 3})
    with twins.consumer(few) as consumer:
        consumer.assign(ten, 0, 0)
        assert [len(consumer.poll_batch(timeout=30)) for _ in range(3)] == [3, 3, 3]


def test_a_table_has_every_column_with_its_type(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    with Producer(connection) as producer:
        producer.produce(
            topic, "k", "v", partition=1, timestamp=1234, headers=[("a", b"1"), ("a", None)]
        )
        producer.produce(topic, None, None, partition=1, timestamp=5)
    with twins.consumer(connection) as consumer:
        consumer.assign(topic, 1, 0)
        table = consumer.poll_table(2, 30)
    assert table.schema == pa.schema(
        {
            "key": pa.binary(),
            "value": pa.binary(),
            "topic": pa.string(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.timestamp("ms", "UTC"),
            "headers": pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
        }
    )
    rows = table.to_pylist()
    assert [(r["key"], r["value"], r["topic"], r["partition"], r["offset"]) for r in rows] == [
        (b"k", b"v", topic, 1, 0),
        (None, None, topic, 1, 1),
    ]
    assert [row["timestamp"].timestamp() for row in rows] == [1.234, 0.005]
    assert rows[0]["headers"] == [{"name": "a", "value": b"1"}, {"name": "a", "value": None}]
    assert rows[1]["headers"] == []


def test_a_table_may_hold_several_topics(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topics = sorted([new_topic(), new_topic()])
    for topic in topics:
        fill(connection, topic, [topic])
    with twins.consumer(connection) as consumer:
        consumer.assign(topics, [0, 0], [0, 0])
        table = consumer.poll_table(2, 30)
    assert sorted(table["topic"].to_pylist()) == topics
    assert table["topic"].to_pylist() == [value.decode() for value in table["value"].to_pylist()]


def test_values_and_keys_are_decoded_by_their_formats(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with Producer(connection, format="json", key_format="integer") as producer:
        producer.produce(topic, 7, {"a": 1})
        producer.produce(topic, None, None)
    with twins.consumer(connection, format="json", key_format="integer") as consumer:
        consumer.assign(topic, 0, 0)
        assert [(r.key, r.value) for r in drained(consumer, 2)] == [(7, {"a": 1}), (None, None)]


def test_reading_without_a_format_detects_json_and_the_binary_form(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with Producer(connection) as producer:
        producer.produce(topic, "k", [1, 2], "json")
        producer.produce(topic, "k", "abc", "dolphindb")
        producer.produce(topic, "k", 1.5, "arrow")
    with twins.consumer(connection, format="auto") as consumer:
        consumer.assign(topic, 0, 0)
        assert [record.value for record in drained(consumer, 3)] == [[1, 2], "abc", 1.5]


def test_bytes_that_do_not_decode_are_an_error_of_their_record_alone(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    fill(connection, topic, ['{"a":1}', "{broken", '{"a":2}'])
    with twins.consumer(connection) as consumer:
        consumer.assign(topic, 0, 0)
        first, broken, last = consumer.poll_batch(3, 30, "json")
    assert (first.value, last.value, first.error, last.error) == ({"a": 1}, {"a": 2}, None, None)
    assert isinstance(broken.error, FormatError)
    assert broken.value == b"{broken"


def test_the_poll_time_out_can_be_read_and_set(twins: Twins, connection: Connection) -> None:
    with twins.consumer(connection, timeout=0.5) as consumer:
        assert consumer.timeout == 0.5
        consumer.timeout = 0.1
        assert consumer.timeout == 0.1


def test_wakeup_from_another_thread_ends_a_wait(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    with twins.consumer(connection) as consumer:
        consumer.assign(new_topic(), 0, 0)
        threading.Timer(0.3, consumer.wakeup).start()
        with pytest.raises(WakeupError):
            consumer.poll(60)
        assert consumer.poll(0.05) is None
        threading.Timer(0.3, consumer.wakeup).start()
        assert list(consumer) == []


# -- offsets


def test_commit_takes_all_a_record_or_offsets(
    twins: Twins, connection: Connection, group: str, ten: str
) -> None:
    with twins.consumer(connection, group, **FROM_START) as consumer:
        consumer.assign(ten, 0, 0)
        records = consumer.poll_batch(4, 30)
        assert consumer.commit(records[1]) == {(ten, 0): 2}
        assert consumer.committed() == {(ten, 0): 2}
        assert consumer.commit() == {(ten, 0): 4}
        assert consumer.committed([(ten, 0)]) == {(ten, 0): 4}
        consumer.commit({(ten, 0): 3})
        assert consumer.committed() == {(ten, 0): 3}


def test_committing_when_nothing_was_consumed_raises(
    twins: Twins, connection: Connection, group: str, ten: str
) -> None:
    with twins.consumer(connection, group) as consumer:
        consumer.assign(ten, 0, 0)
        with pytest.raises(PenstockError, match="_NO_OFFSET"):
            consumer.commit()


def test_a_commit_without_waiting_tells_its_callback(
    twins: Twins, connection: Connection, group: str, ten: str
) -> None:
    reported: list[tuple[Any, Any]] = []
    with twins.consumer(
        connection, group, on_commit=lambda *what: reported.append(what)
    ) as consumer:
        consumer.assign(ten, 0, 0)
        consumer.poll_batch(3, 30)
        consumer.commit_async()
        eventually(lambda: (consumer.poll(0.05) and False) or reported)
        assert reported == [(None, {(ten, 0): 3})]
        consumer.commit_async({(ten, 0): 1})
        eventually(lambda: (consumer.poll(0.05) and False) or len(reported) == 2)
        assert reported[1] == (None, {(ten, 0): 1})


@pytest.mark.parametrize("everything", [True, False])
def test_stored_offsets_are_what_auto_commit_commits(
    twins: Twins, connection: Connection, admin: Admin, group: str, ten: str, everything: bool
) -> None:
    settings = {
        "enable_auto_commit": True,
        "enable_auto_offset_store": False,
        "auto_commit_interval_ms": 100,
    }
    with twins.consumer(connection, group, **FROM_START, **settings) as consumer:
        consumer.subscribe(ten)
        drained(consumer, 5)
        consumer.store_offsets(*([] if everything else [{(ten, 0): 2}]))
    assert admin.committed(group) == {(ten, 0): 5 if everything else 2}


def test_storing_by_hand_what_is_stored_anyway_is_refused(
    twins: Twins, connection: Connection, ten: str
) -> None:
    with (
        twins.consumer(connection) as consumer,
        pytest.raises(ConfigError, match="give enable_auto_offset_store=False"),
    ):
        consumer.store_offsets()


def test_auto_commit_commits_what_was_handed_out_and_no_more(
    twins: Twins, connection: Connection, admin: Admin, group: str, ten: str
) -> None:
    settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 100}
    with twins.consumer(connection, group, **FROM_START, **settings) as consumer:
        consumer.subscribe(ten)
        for record in consumer:
            if record.value == b"3":
                break
    assert admin.committed(group) == {(ten, 0): 4}


def test_seek_pause_and_resume(twins: Twins, connection: Connection, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    fill(connection, topic, [str(number) for number in range(10)], partitions=2)
    with twins.consumer(connection) as consumer:
        consumer.assign({(topic, 0): 0, (topic, 1): 0})
        drained(consumer, 10)
        consumer.pause([(topic, 1)])
        consumer.seek({(topic, 0): 3, (topic, 1): 3})
        assert [r.value for r in consumer.poll_batch(5, 2)] == [b"6", b"8"]
        consumer.resume([(topic, 1)])
        assert sorted(r.value for r in consumer.poll_batch(2, 30)) == [b"7", b"9"]


def test_position_watermarks_and_offsets_for_times(
    twins: Twins, connection: Connection, ten: str
) -> None:
    where = (ten, 0)
    with twins.consumer(connection) as consumer:
        consumer.assign({where: 3})
        assert consumer.position() == {}
        consumer.poll_batch(2, 30)
        assert consumer.position() == {where: 5}
        assert consumer.watermarks() == {where: (0, 10)}
        assert consumer.watermarks([where]) == {where: (0, 10)}
        assert consumer.offsets_for_times({where: 4500}) == {where: 4}
        assert consumer.offsets_for_times({where: 1_000_000}) == {where: -1}


def test_cached_watermarks_make_no_request(connection: Connection, ten: str) -> None:
    with Consumer(connection) as consumer:
        consumer.assign(ten, 0, 3)
        drained(consumer, 1)
        assert consumer.cached_watermarks()[ten, 0][1] == 10


@pytest.mark.by_turns
def test_offset_information_of_the_worked_example(
    twins: Twins, connection: Connection, group: str, ten: str
) -> None:
    with twins.consumer(connection, group, enable_auto_commit=False) as consumer:
        consumer.assign(ten, 0, 3)
        consumer.poll(30)
        consumer.poll(30)
        row = {"topic": ten, "partition": 0, "minOffset": 0, "maxOffset": 10}
        assert consumer.offset_info(ten, 0).to_pylist() == [
            {**row, "offsetPosition": 5, "offsetCommitted": -1001}
        ]
        consumer.commit()
        assert consumer.offset_info().to_pylist() == [
            {**row, "offsetPosition": 5, "offsetCommitted": 5}
        ]
        assert consumer.offset_info([ten], [0]) == consumer.offset_info()


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("smallest", 0),
        ("earliest", 0),
        ("beginning", 0),
        ("largest", 10),
        ("latest", 10),
        ("end", 10),
    ],
)
def test_where_a_new_group_begins(
    connection: Connection, group: str, ten: str, word: str, first: int
) -> None:
    with Consumer(connection, group, auto_offset_reset=word) as consumer:
        consumer.subscribe(ten)
        eventually(lambda: consumer.poll(0.1) or (ten, 0) in consumer.at_end)
        assert consumer.position().get((ten, 0), 10) == (1 if first == 0 else 10)


def test_auto_offset_reset_error_is_raised(connection: Connection, group: str, ten: str) -> None:
    with Consumer(connection, group, auto_offset_reset="error") as consumer:
        consumer.subscribe(ten)
        with pytest.raises(TerminalError, match="_AUTO_OFFSET_RESET"):
            eventually(lambda: consumer.poll(0.5))


# -- the group


def test_a_member_has_a_name_and_group_metadata(
    twins: Twins, connection: Connection, admin: Admin, group: str, ten: str
) -> None:
    with twins.consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(ten)
        drained(consumer, 1)
        assert [m.id for m in admin.describe_group(group).members] == [consumer.member_id]


STRATEGIES: dict[str, dict[str, Any]] = {
    "range": {"partition_assignment_strategy": "range"},
    "roundrobin": {"partition_assignment_strategy": "roundrobin"},
    "sticky": {"partition_assignment_strategy": "sticky"},
    "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer protocol": {"group_protocol": "consumer"},
}


@pytest.mark.by_turns
@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_rebalance_callbacks_tell_of_partitions_that_come_and_go(
    connection: Connection, group: str, new_topic: NewTopic, strategy: str
) -> None:
    topic = new_topic(4)
    fill(connection, topic, [str(number) for number in range(40)], partitions=4)
    reported: list[tuple[str, list[tuple[str, int]]]] = []
    committed: dict[Any, int] = {}

    def revoked(consumer: Consumer, partitions: list[tuple[str, int]]) -> None:
        reported.append(("revoked", partitions))
        committed.update(consumer.commit(consumer.position(partitions)))

    settings = {**FROM_START, **STRATEGIES[strategy]}
    with Consumer(connection, group, **settings) as first:
        first.subscribe(
            topic,
            on_assigned=lambda _c, partitions: reported.append(("assigned", partitions)),
            on_revoked=revoked,
        )
        assert len(drained(first, 40)) == 40
        assert sorted(where for kind, some in reported for where in some) == [
            (topic, n) for n in range(4)
        ]
        with Consumer(connection, group, **settings) as second:
            second.subscribe(topic)
            eventually(
                lambda: (first.poll(0.05), second.poll(0.05)) and len(second.assignment) == 2
            )
            eventually(lambda: first.poll(0.05) or len(first.assignment) == 2)
            # What the first one committed at the last moment is where the second one begins.
            assert second.poll_batch(1, 1) == []
            gone = {where for kind, some in reported if kind == "revoked" for where in some}
            assert gone >= second.assignment
            assert {committed[where] for where in gone} == {10}


def test_on_assigned_may_choose_where_to_begin(
    twins: Twins, connection: Connection, group: str, ten: str
) -> None:
    for settings in ({}, {"partition_assignment_strategy": "cooperative-sticky"}):
        with twins.consumer(connection, group, **FROM_START, **settings) as consumer:
            consumer.subscribe(ten, on_assigned=lambda _c, places: dict.fromkeys(places, 8))
            assert [r.value for r in drained(consumer, 2)] == [b"8", b"9"]


def test_lost_partitions_are_passed_to_on_lost(
    connection: Connection, admin: Admin, group: str, ten: str
) -> None:
    lost: list[Any] = []
    revoked: list[Any] = []
    settings = {"max_poll_interval_ms": 6000, "session_timeout_ms": 6000, **FROM_START}
    with Consumer(connection, group, **settings) as consumer:
        consumer.subscribe(
            ten,
            on_revoked=lambda _c, places: revoked.extend(places),
            on_lost=lambda _c, places: lost.extend(places),
        )
        drained(consumer, 1)
        # Not polling for longer than max.poll.interval.ms: the group goes on without this member.
        eventually(lambda: not admin.describe_group(group).members)
        eventually(lambda: _polled(consumer) or lost)
        assert (lost, revoked) == ([(ten, 0)], [])


def _polled(consumer: Consumer) -> None:
    try:
        consumer.poll(0.1)
    except PenstockError as error:
        assert "_MAX_POLL_EXCEEDED" in str(error)


def test_json_values_of_a_topic_in_a_mapping(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with Producer(connection) as producer:
        producer.produce(topic, "a", {"n": 1}, "json")
        producer.produce(topic, "a", {"n": 2}, "json")
    with twins.consumer(connection) as consumer:
        consumer.assign(topic, 0, 0)
        found = consumer.poll_mapping(2, 30, "json")
    assert json.dumps(found[b"a"]) == '{"n": 2}'
