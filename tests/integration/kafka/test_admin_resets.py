"""Groups are moved as planned, or not at all; kafka-consumer-groups is the judge of where they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

import pytest
from confluent_kafka import Consumer

from penstock.config import Connection
from penstock.embedded.tools import run_tool
from penstock.errors import ConfigError, TerminalError
from penstock.kafka import Admin, GroupOffsets, Producer, ResetPlan
from penstock.testing import eventually

NewTopic = Callable[..., str]
Filled = Callable[..., str]


@pytest.fixture
def filled(admin: Admin, connection: Connection, new_topic: NewTopic) -> Filled:
    """Makes topics with ten records in each partition, a second apart, the first one at a second."""

    def make(partitions: int = 1) -> str:
        topic = new_topic(partitions)
        with Producer(connection) as producer:
            for number in range(10 * partitions):
                at = 1000 * (1 + number // partitions)
                producer.produce(topic, value=b"x", partition=number % partitions, timestamp=at)
        return topic

    return make


def commit(connection: Connection, group: str, offsets: dict[tuple[str, int], int]) -> None:
    with GroupOffsets(connection, group) as committed:
        committed.commit(offsets)


@pytest.fixture
def standing(admin: Admin, connection: Connection, group: str, filled: Filled) -> tuple[str, int]:
    """A partition with the offsets 2 to 9, in which the group is at 5."""
    where = (filled(), 0)
    admin.delete_records({where: 2})
    commit(connection, group, {where: 5})
    return where


@contextmanager
def member(connection: Connection, group: str, topic: str) -> Iterator[None]:
    """A consumer of the group."""
    how = {"group.id": group, "enable.auto.commit": False}
    consumer = Consumer(connection.librdkafka("consumer", **how) | {"log_level": 0})
    consumer.subscribe([topic])

    def joined() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    try:
        eventually(joined)
        yield
    finally:
        consumer.close()


def moves(plan: ResetPlan) -> list[tuple[int, int | None, int, int | None]]:
    return [(m.partition, m.current, m.new, m.change) for m in plan.moves]


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("to", "new"),
    [
        ("earliest", 2),
        ("latest", 10),
        ("end", 10),
        ("7", 7),
        (7, 7),
        ("+3", 8),
        ("-1", 4),
        ("1970-01-01T00:00:05Z", 4),
        (datetime(1970, 1, 1, 0, 0, 5, tzinfo=timezone.utc), 4),
        (datetime(1970, 1, 1, 0, 0, 5), 4),
        ("@5000", 4),
        ("-1h", 10),
    ],
)
def test_every_target_is_planned_and_carried_out(
    admin: Admin, group: str, standing: tuple[str, int], to: object, new: int
) -> None:
    plan = admin.plan_reset(group, to)
    assert moves(plan) == [(0, 5, new, new - 5)]
    assert [move.note for move in plan.moves] == [""]
    assert admin.committed(group) == {standing: 5}
    admin.reset(plan)
    assert admin.committed(group) == {standing: new}


def test_offsets_by_partition_move_only_these(
    admin: Admin, connection: Connection, group: str, filled: Filled
) -> None:
    topic = filled(3)
    commit(connection, group, {(topic, 0): 1, (topic, 1): 1})
    plan = admin.plan_reset(group, {(topic, 1): 4, (topic, 2): 6})
    assert moves(plan) == [(1, 1, 4, 3), (2, None, 6, None)]
    admin.reset(plan)
    assert admin.committed(group) == {(topic, 0): 1, (topic, 1): 4, (topic, 2): 6}


@pytest.mark.parametrize(
    ("to", "edge"),
    [
        ("99", (10, "wanted 99; the partition ends at 10")),
        ("0", (2, "wanted 0; the partition starts at 2")),
        ("+50", (10, "wanted 55; the partition ends at 10")),
        ("-50", (2, "wanted -45; the partition starts at 2")),
    ],
)
def test_what_lies_outside_becomes_the_edge_and_the_plan_says_so(
    admin: Admin, group: str, standing: tuple[str, int], to: str, edge: tuple[int, str]
) -> None:
    (move,) = admin.plan_reset(group, to).moves
    assert (move.topic, move.partition) == standing
    assert (move.new, move.note) == edge


def test_topics_and_partitions_can_be_chosen(
    admin: Admin, connection: Connection, group: str, filled: Filled
) -> None:
    one, two = filled(2), filled(2)
    commit(connection, group, {(one, 0): 1, (one, 1): 1, (two, 0): 1})
    plan = admin.plan_reset(group, "latest", [one, (two, 1)])
    assert set(plan.offsets) == {(one, 0), (one, 1), (two, 1)}
    assert set(admin.plan_reset(group, "latest", two).offsets) == {(two, 0), (two, 1)}


def test_a_group_can_be_set_up_before_its_first_start(
    admin: Admin, connection: Connection, group: str, filled: Filled
) -> None:
    topic = filled(2)
    plan = admin.plan_reset(group, "5", topic)
    assert (plan.state, plan.members, moves(plan)) == (
        None,
        0,
        [(0, None, 5, None), (1, None, 5, None)],
    )
    admin.reset(plan)
    reported = run_tool("kafka-consumer-groups", connection, ["--describe", "--group", group])
    shown = re.findall(rf"{topic}\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", reported)
    assert sorted(shown) == [("0", "5", "10", "5"), ("1", "5", "10", "5")]


def test_kafkas_own_tool_plans_the_same(
    admin: Admin, connection: Connection, group: str, filled: Filled
) -> None:
    topic = filled(2)
    commit(connection, group, {(topic, 0): 3, (topic, 1): 8})
    arguments = ["--group", group, "--reset-offsets", "--shift-by", "4", "--topic", topic]
    reported = run_tool("kafka-consumer-groups", connection, [*arguments, "--dry-run"])
    theirs = {int(p): int(at) for p, at in re.findall(rf"{topic}\s+(\d+)\s+(\d+)", reported)}
    assert {m.partition: m.new for m in admin.plan_reset(group, "+4").moves} == theirs
    assert theirs == {0: 7, 1: 10}


def test_a_group_with_members_is_neither_moved_nor_deleted(
    admin: Admin, connection: Connection, group: str, filled: Filled
) -> None:
    topic = filled()
    commit(connection, group, {(topic, 0): 5})
    before = admin.plan_reset(group, "earliest")
    with member(connection, group, topic):
        assert admin.plan_reset(group, "earliest").members == 1
        with pytest.raises(TerminalError, match=rf"'{group}': 1 member reads .* stop every"):
            admin.reset(before)
        with pytest.raises(TerminalError, match=rf"deleting group '{group}': 1 member reads"):
            admin.delete_group(group)
    assert admin.committed(group) == {(topic, 0): 5}
    admin.reset(before)
    assert admin.committed(group) == {(topic, 0): 0}


def test_a_deleted_group_is_gone_with_its_offsets(
    admin: Admin, connection: Connection, group: str, filled: Filled
) -> None:
    topic = filled()
    commit(connection, group, {(topic, 0): 5})
    admin.delete_group(group)
    assert group not in [g.name for g in admin.groups()]
    assert admin.committed(group) == {}
    assert group not in run_tool("kafka-consumer-groups", connection, ["--list"]).split()


@pytest.mark.parametrize("call", ["plan_reset", "delete_group"])
def test_a_missing_group_is_an_error_with_the_nearest(
    admin: Admin, connection: Connection, group: str, filled: Filled, call: str
) -> None:
    commit(connection, group, {(filled(), 0): 5})
    arguments = ["earliest"] if call == "plan_reset" else []
    with pytest.raises(ConfigError, match=rf"no consumer group '{group}x'; the nearest: .*{group}"):
        getattr(admin, call)(f"{group}x", *arguments)


def test_what_cannot_be_planned_says_why(
    admin: Admin, connection: Connection, group: str, filled: Filled
) -> None:
    topic = filled(2)
    commit(connection, group, {(topic, 0): 5})
    with pytest.raises(
        ConfigError, match="'soon' is not a position to reset to; allowed: earliest"
    ):
        admin.plan_reset(group, "soon")
    with pytest.raises(ConfigError, match=rf"shift of \+1 .* none in {topic}:1; reset these to"):
        admin.plan_reset(group, "+1", topic)
    with pytest.raises(ConfigError, match=f"'{topic}' has no partition 7; it has 0 to 1"):
        admin.plan_reset(group, "earliest", [(topic, 7)])
    with pytest.raises(ConfigError, match="there is no topic"):
        admin.plan_reset(group, {(f"{topic}-not", 0): 1})
    with pytest.raises(ConfigError, match="leave topics out"):
        admin.plan_reset(group, {(topic, 0): 1}, topic)


def test_a_group_that_committed_nothing_needs_topics(
    admin: Admin, connection: Connection, group: str, filled: Filled
) -> None:
    topic = filled()
    with (
        member(connection, group, topic),
        pytest.raises(ConfigError, match=f"'{group}' has committed nothing yet: name the topics"),
    ):
        admin.plan_reset(group, "earliest")
