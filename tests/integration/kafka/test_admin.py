import re
from collections.abc import Callable
from uuid import uuid4

import pytest

from penstock.config import Connection
from penstock.errors import BrokerUnavailableError, ConfigError
from penstock.kafka import Admin, Consumer, GroupOffsets, Producer

NewTopic = Callable[..., str]


def filled(connection: Connection, topic: str, count: int, partition: int = 0) -> None:
    with Producer(connection) as producer:
        for number in range(count):
            producer.produce(
                topic, value=str(number), partition=partition, timestamp=1000 + number * 1000
            )


def test_a_created_topic_is_listed_and_described(admin: Admin, new_topic: NewTopic) -> None:
    topic = new_topic(3, **{"retention.ms": "60000"})
    (line,) = [t for t in admin.topics() if t.name == topic]
    assert (line.partitions, line.replication, line.internal) == (3, 1, False)
    detail = admin.describe_topic(topic)
    assert [p.partition for p in detail.partitions] == [0, 1, 2]
    assert all(p.leader in p.replicas and p.isr == p.replicas for p in detail.partitions)
    assert detail.config == {"retention.ms": "60000"}


def test_a_described_topic_tells_its_offsets(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    filled(connection, topic, 5, partition=1)
    offsets = [(p.earliest, p.latest) for p in admin.describe_topic(topic).partitions]
    assert offsets == [(0, 0), (0, 5)]


def test_a_deleted_topic_is_gone_when_the_call_returns(admin: Admin, new_topic: NewTopic) -> None:
    topic = new_topic()
    admin.delete_topic(topic)
    assert topic not in [t.name for t in admin.topics()]


def test_kafkas_own_topics_are_listed_on_request_only(
    admin: Admin, connection: Connection, group: str, new_topic: NewTopic
) -> None:
    with GroupOffsets(connection, group) as offsets:
        offsets.commit({(new_topic(), 0): 0})
    assert "__consumer_offsets" not in [t.name for t in admin.topics()]
    assert "__consumer_offsets" in [t.name for t in admin.topics(internal=True)]


@pytest.mark.parametrize("call", ["describe_topic", "delete_topic"])
def test_a_missing_topic_is_an_error_with_the_nearest(
    admin: Admin, new_topic: NewTopic, call: str
) -> None:
    topic = new_topic()
    with pytest.raises(ConfigError, match=f"the nearest: .*{topic}"):
        getattr(admin, call)(f"{topic}x")
    assert f"{topic}x" not in [t.name for t in admin.topics()]


def test_a_topic_that_exists_cannot_be_created(admin: Admin, new_topic: NewTopic) -> None:
    topic = new_topic()
    with pytest.raises(ConfigError, match=f"creating topic '{topic}'.*already exists"):
        admin.create_topic(topic)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("no spaces", {}),
        ("copies", {"replication": 99}),
        ("settings", {"config": {"retention.ms": "soon"}}),
        ("settings", {"config": {"retention": "5"}}),
    ],
)
def test_what_the_broker_refuses_is_a_config_error(admin: Admin, name: str, how: dict) -> None:
    with pytest.raises(ConfigError, match=f"creating topic '{name}"):
        admin.create_topic(name, **how)


def test_partitions_by_names_and_by_pattern(admin: Admin, new_topic: NewTopic) -> None:
    one, two = new_topic(1), new_topic(2)
    assert admin.partitions([two, one, two]) == sorted([(one, 0), (two, 0), (two, 1)])
    assert admin.partitions(re.compile(f"{two[:-1]}.")) == [(two, 0), (two, 1)]
    assert admin.partitions(re.compile("no-topic-is-called-so.*")) == []


def test_offsets_at_a_time_are_the_end_where_nothing_is_that_young(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    filled(connection, topic, 4)
    both = admin.partitions([topic])
    assert admin.earliest(both) == {(topic, 0): 0, (topic, 1): 0}
    assert admin.latest(both) == {(topic, 0): 4, (topic, 1): 0}
    assert admin.offsets_at(2500, both) == {(topic, 0): 2, (topic, 1): 0}
    assert admin.offsets_at(99_000, both) == {(topic, 0): 4, (topic, 1): 0}


def test_an_empty_request_has_an_empty_reply(admin: Admin) -> None:
    assert admin.latest([]) == {}
    assert admin.committed("any", []) == {}


def test_a_group_that_never_was_has_committed_nothing(admin: Admin) -> None:
    assert admin.committed(f"never-{uuid4()}") == {}


def test_offsets_are_committed_without_joining(
    admin: Admin, connection: Connection, group: str, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    filled(connection, topic, 10)
    with GroupOffsets(connection, group) as offsets:
        assert offsets.committed() == {}
        offsets.commit({(topic, 0): 3, (topic, 1): 0})
        offsets.commit({(topic, 0): 7})
        assert offsets.committed() == {(topic, 0): 7, (topic, 1): 0}
        assert offsets.committed([(topic, 1)]) == {(topic, 1): 0}
        offsets.commit({})
    detail = admin.describe_group(group)
    assert (detail.state, detail.members, detail.lag) == ("empty", (), 3)
    assert [(p.partition, p.committed, p.end, p.lag) for p in detail.positions] == [
        (0, 7, 10, 3),
        (1, 0, 0, 0),
    ]
    assert group in [g.name for g in admin.groups()]


def test_a_commit_to_a_topic_that_is_not_there_is_an_error(
    connection: Connection, group: str
) -> None:
    with GroupOffsets(connection, group) as offsets, pytest.raises(ConfigError, match=group):
        offsets.commit({(f"no-topic-{uuid4()}", 0): 1})


def test_a_described_group_names_its_members_and_what_they_read(
    admin: Admin, connection: Connection, group: str, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    filled(connection, topic, 1)
    with Consumer(connection, group, **{"auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(topic)
        assert consumer.poll(20) is not None
        detail = admin.describe_group(group)
    (member,) = detail.members
    assert member.partitions == ((topic, 0), (topic, 1))
    assert detail.state == "stable"
    assert {p.member for p in detail.positions} == {member.id}
    assert [p.lag for p in detail.positions] == [None, None]


def test_the_group_of_a_deleted_topic_can_still_be_described(
    admin: Admin, connection: Connection, group: str, new_topic: NewTopic
) -> None:
    gone, kept = new_topic(), new_topic()
    with GroupOffsets(connection, group) as offsets:
        offsets.commit({(gone, 0): 0, (kept, 0): 0})
    admin.delete_topic(gone)
    assert {(p.topic, p.lag) for p in admin.describe_group(group).positions} >= {(kept, 0)}


def test_a_missing_group_is_an_error_that_names_it(admin: Admin) -> None:
    name = f"never-{uuid4()}"
    with pytest.raises(ConfigError, match=f"no consumer group '{name}'"):
        admin.describe_group(name)


UNREACHABLE = Connection.from_config({"bootstrap.servers": "127.0.0.1:1"})


@pytest.mark.parametrize(
    "call",
    [
        lambda: Admin(UNREACHABLE, timeout=1).topics(),
        lambda: Admin(UNREACHABLE, timeout=1).create_topic("t"),
        lambda: Admin(UNREACHABLE, timeout=1).partitions(["t"]),
        lambda: Admin(UNREACHABLE, timeout=1).latest([("t", 0)]),
        lambda: Admin(UNREACHABLE, timeout=1).committed("g"),
        lambda: GroupOffsets(UNREACHABLE, "g", timeout=1).commit({("t", 0): 1}),
    ],
    ids=["topics", "create", "partitions", "latest", "committed", "commit"],
)
def test_a_broker_that_is_away_is_one_error_and_nothing_on_the_terminal(
    call: Callable[[], object], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BrokerUnavailableError) as caught:
        call()
    assert "127.0.0.1:1" in str(caught.value)
    assert "penstock broker start" in str(caught.value)
    assert capfd.readouterr() == ("", "")
