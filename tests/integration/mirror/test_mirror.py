"""Topics of one cluster in another: every record as it is, every change followed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.integration.mirror.mirroring import (
    caught_up,
    created,
    is_mirrored,
    partitions_of,
    producing,
    ran,
    rows,
    settings_of,
    topics_of,
    write,
)

from penstock import Admin, Connection, Pipeline, State
from penstock.errors import ConfigError, DataLossError
from penstock.imports import start
from penstock.imports.position_editing import read_positions, set_positions
from penstock.testing import eventually, read_all

Mirror = Callable[..., Pipeline]


def test_every_kind_of_record_and_the_settings_are_copied(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique, segment_ms=86_400_000, min_insync_replicas=1, max_message_bytes=50_000)
    dice = random.Random(1)
    write(east, unique, 600, dice)
    assert ran(mirror(topics=[unique])).progress().rows == 600
    assert is_mirrored(east, unique, connection, unique)
    assert settings_of(connection, unique) == {
        "segment.ms": "86400000",
        "max.message.bytes": "50000",
    }
    assert ran(mirror(topics=[unique])).progress().rows == 0
    write(east, unique, 300, dice, at=600)
    assert ran(mirror(topics=[unique])).progress().rows == 300
    assert is_mirrored(east, unique, connection, unique)


def test_aborted_transactions_and_compacted_records_are_not_copied(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique, cleanup_policy="compact")
    client = Producer({**east.librdkafka("producer"), "transactional.id": unique})
    client.init_transactions(10)
    for number in range(6):
        client.begin_transaction()
        for n in range(50):
            client.produce(unique, b"%d" % n, b"key %d" % n, partition=n % 3)
        client.flush(10)
        client.abort_transaction(10) if number % 2 else client.commit_transaction(10)
    running = ran(mirror(topics=[unique]))
    assert running.progress().rows == 150
    assert is_mirrored(east, unique, connection, unique)
    ends = {position["offset"] for position in read_positions(connection, unique).values()}
    assert min(ends) > 100  # with the markers at the end: nothing is pending
    client.begin_transaction()
    client.produce(unique, b"open", b"key", partition=0)
    client.flush(10)
    assert ran(mirror(topics=[unique])).progress().rows == 0
    client.commit_transaction(10)
    assert ran(mirror(topics=[unique])).progress().rows == 1
    assert settings_of(connection, unique) == {"cleanup.policy": "compact"}


def test_topics_partitions_and_settings_are_followed_while_it_runs(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    dice, first, second = random.Random(2), f"{unique}-a", f"{unique}-b"
    created(east, first, 2)
    definition = mirror("copy.{cluster}.{topic}", pattern=f"{unique}-.*", exclude=".*-x", alias="e")
    with start(definition) as running:
        eventually(lambda: f"copy.e.{first}" in topics_of(connection))
        created(east, f"{unique}-x")
        created(east, second)
        write(east, second, 90, dice)
        caught_up(east, second, connection, f"copy.e.{second}")
        with Admin(east) as admin:
            admin.add_partitions(first, 3)
            admin.alter_topic(first, {"segment.ms": 1_000_000, "cleanup.policy": "compact"})
            write(east, first, 90, dice)
            caught_up(east, first, connection, f"copy.e.{first}")
            assert partitions_of(connection, f"copy.e.{first}") == 3
            copied = {"segment.ms": "1000000", "cleanup.policy": "compact"}
            eventually(lambda: settings_of(connection, f"copy.e.{first}") == copied)
            admin.alter_topic(first, {"segment.ms": None})
            del copied["segment.ms"]
            eventually(lambda: settings_of(connection, f"copy.e.{first}") == copied)
        assert running.is_active
    assert f"copy.e.{unique}-x" not in topics_of(connection)


def test_a_recreated_topic_is_copied_from_its_start(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique)
    write(east, unique, 60, random.Random(3))
    before = rows(east, unique)
    with start(mirror(topics=[unique])):
        caught_up(east, unique, connection)
        with Admin(east) as admin:
            admin.delete_topic(unique)
        created(east, unique)
        write(east, unique, 90, random.Random(4))
        after = rows(east, unique)
        both = {number: before[number] + after[number] for number in before}
        eventually(lambda: rows(connection, unique) == both, every=0.3)


def test_a_copy_that_was_deleted_gets_new_records_only_and_this_is_reported(
    connection: Connection,
    east: Connection,
    unique: str,
    mirror: Mirror,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def reported() -> list[str]:
        return [each.topic for each in caplog.records if each.message == "copy_is_new"]

    created(east, unique)
    write(east, unique, 60, random.Random(5))
    ran(mirror(topics=[unique]))
    assert reported() == []
    with Admin(connection) as admin:
        admin.delete_topic(unique)
    write(east, unique, 30, random.Random(6), at=60)
    assert ran(mirror(topics=[unique])).progress().rows == 30
    assert reported() == [unique]


def test_records_that_were_removed_too_early_end_the_mirror_or_are_skipped(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique)
    write(east, unique, 90, random.Random(5))
    ran(mirror(topics=[unique]))
    write(east, unique, 90, random.Random(6), at=90)
    with Admin(east) as admin:
        admin.delete_records({(unique, 0): 40})
    with pytest.raises(
        DataLossError, match="offsets 30 to 39 were removed before they were copied"
    ):
        ran(mirror(topics=[unique]))
    running = ran(mirror(topics=[unique], on_data_loss="skip"))
    assert running.progress().failed == 1
    assert "offsets 30 to 39" in str(running.progress().last_error)
    wanted = rows(east, unique)
    copied = rows(connection, unique)
    assert copied[1] == wanted[1]
    assert copied[0][30:] == wanted[0]


def test_a_record_that_the_target_does_not_take_is_a_dead_letter(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique, 1, max_message_bytes=3_000_000)
    created(connection, unique, 1, max_message_bytes=2_000)
    sizes = [10, 1_900, 2_100, 10, 2_500_000, 10]
    with producing(east, **{"message.max.bytes": 3_000_000}) as client:
        for size in sizes:
            client.produce(unique, b"x" * size, b"key")
        client.produce(unique, b"", headers=[("large", b"y" * 3000)])
        for n in range(500):
            client.produce(unique, b"%d" % n)
    running = ran(mirror(topics=[unique], configs=False))
    assert running.progress().failed == 3
    copied = [len(value or b"") for _, value, *_ in rows(connection, unique)[0]]
    assert copied[:4] == [10, 1_900, 10, 10]
    assert len(copied) == 504
    letters = read_all(connection, f"{unique}.dead-letters")
    reasons = [dict(letter.headers)["penstock.error"].decode() for letter in letters]
    assert "offset 2, cannot be copied" in reasons[0]
    assert "the record has 2173 bytes in a batch of its own, and the topic takes 2000" in reasons[0]
    assert [letter.key for letter in letters] == [b"key", b"key", None]
    # With the settings of the source, all of them fit.
    with Admin(connection) as admin:
        admin.delete_topic(unique)
    set_positions(connection, unique, dict.fromkeys(read_positions(connection, unique)))
    assert ran(mirror(topics=[unique])).progress().rows == 507


def test_a_record_without_key_cannot_be_in_a_compacted_copy(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique, 1)
    with producing(east) as client:
        for key in (b"a", None, b"b", b""):
            client.produce(unique, b"value", key)
    with Admin(east) as admin:
        admin.alter_topic(unique, {"cleanup.policy": "compact"})
    assert ran(mirror(topics=[unique])).progress().failed == 1
    assert [key for key, *_ in rows(connection, unique)[0]] == [b"a", b"b", b""]
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    assert (letter.key, letter.value) == (None, b"value")
    assert b"the topic is compacted" in dict(letter.headers)["penstock.error"]


def test_a_record_of_a_time_that_the_target_refuses_is_a_dead_letter(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique, 1, message_timestamp_after_max_ms=2**62)
    now, day = int(time.time() * 1000), 86_400_000
    with producing(east) as client:
        for time_ in (now, now + 10 * day, now - 10 * day, now * 1000, now + 60_000):
            client.produce(unique, b"value", b"key", timestamp=time_)
    assert ran(mirror(topics=[unique])).progress().failed == 2
    assert [row[2] for row in rows(connection, unique)[0]] == [now, now - 10 * day, now + 60_000]
    letters = read_all(connection, f"{unique}.dead-letters")
    reasons = [dict(letter.headers)["penstock.error"].decode() for letter in letters]
    assert "offset 1, cannot be copied" in reasons[0]
    assert "and the topic takes 3600000 (message.timestamp.after.max.ms)" in reasons[0]
    assert "offset 3, cannot be copied" in reasons[1]
    # A limit for times long ago; the one for times to come is copied from the source now.
    with Admin(connection) as admin:
        admin.alter_topic(unique, {"message.timestamp.before.max.ms": day})
    set_positions(connection, unique, dict.fromkeys(read_positions(connection, unique)))
    running = ran(mirror(topics=[unique], exclude_configs=["message.timestamp.before.max.ms"]))
    assert running.progress().failed == 1
    last = read_all(connection, f"{unique}.dead-letters")[-1]
    assert b"ms before now" in dict(last.headers)["penstock.error"]


def test_settings_that_are_excluded_are_not_copied(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique, 1, segment_ms=5_000_000)
    definition = mirror(topics=[unique], exclude_configs=["segment.ms"])
    ran(definition)
    assert settings_of(connection, unique) == {}


def test_mirrors_in_both_directions_do_not_go_in_circles(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, f"{unique}-e")
    created(connection, f"{unique}-w")
    write(east, f"{unique}-e", 30, random.Random(7))
    write(connection, f"{unique}-w", 30, random.Random(8))
    there = mirror(pattern=f"{unique}-.*")
    back = mirror(pattern=f"{unique}-.*", source=connection, target=east)
    for _ in range(2):
        assert ran(there).progress().failed == 0
        assert ran(back).progress().failed == 0
    assert sum(map(len, rows(connection, f"{unique}-e").values())) == 30
    assert sum(map(len, rows(east, f"{unique}-w").values())) == 30
    with pytest.raises(ConfigError, match=f"the mirror '{unique}' fills it from the target"):
        ran(mirror(topics=[f"{unique}-w"]))


def test_a_cluster_is_copied_into_itself_under_other_names_only(
    connection: Connection, unique: str, mirror: Mirror
) -> None:
    created(connection, f"{unique}-a")
    write(connection, f"{unique}-a", 30, random.Random(9))
    with pytest.raises(ConfigError, match="would be copied into itself"):
        ran(mirror(topics=[f"{unique}-a"], source=connection))
    copying = mirror(f"{unique}-copy.{{topic}}", pattern=f"{unique}-.*", source=connection)
    for _ in range(2):
        ran(copying)
    own = {name for name in topics_of(connection) if name.startswith(f"{unique}-")}
    assert own == {f"{unique}-a", f"{unique}-copy.{unique}-a"}


def test_a_topic_that_does_not_exist_is_named(mirror: Mirror, unique: str) -> None:
    with pytest.raises(ConfigError, match=f"there is no topic '{unique}'"):
        ran(mirror(topics=[unique]))


def test_a_later_process_takes_over(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique)
    write(east, unique, 30, random.Random(10))
    first = start(mirror(topics=[unique]))
    caught_up(east, unique, connection)
    with start(mirror(topics=[unique])):
        eventually(lambda: first.progress().state is State.FAILED)
        assert "was started by another process" in str(first.progress().last_error)
        write(east, unique, 30, random.Random(11))
        caught_up(east, unique, connection)
