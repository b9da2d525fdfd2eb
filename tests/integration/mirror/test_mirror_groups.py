"""Offsets of groups in the target: a consumer that moves there misses nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from tests.integration.mirror.mirroring import (
    caught_up,
    created,
    is_mirrored,
    missed,
    translations,
    write,
)
from tests.services.command_line import run_here
from typer.testing import CliRunner

from penstock import Connection, Consumer, Pipeline
from penstock.cli.main import app
from penstock.imports import start
from penstock.imports.mirror.mirror_status import mirror_status
from penstock.imports.position_editing import read_positions
from penstock.kafka import GroupOffsets
from penstock.testing import eventually

Mirror = Callable[..., Pipeline]


def commit(connection: Connection, group: str, offsets: dict[tuple[str, int], int]) -> None:
    with GroupOffsets(connection, group) as client:
        client.commit(offsets)


def committed(connection: Connection, group: str, topic: str) -> dict[int, int]:
    with GroupOffsets(connection, group) as client:
        places = [(topic, number) for number in range(3)]
        return {number: offset for (_, number), offset in client.committed(places).items()}


def test_groups_that_move_at_any_moment_miss_nothing(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique)
    dice = random.Random(unique)
    # Records of others before and between: offsets of the target are not those of the source.
    created(connection, f"copy.{unique}")
    write(connection, f"copy.{unique}", 20, dice, at=9_000_000)
    groups = [f"{unique}-g{n}" for n in range(3)]
    definition = mirror(
        "copy.{topic}", topics=[unique], group_pattern=f"{unique}-g.*", max_records=20
    )
    moments, until = [], 0
    with start(definition):
        for _ in range(12):
            count = dice.randrange(30, 200)
            write(east, unique, count, dice, at=until)
            until += count
            for group in groups:
                reached = {(unique, n): dice.randrange(until // 3) for n in range(3)}
                commit(east, group, reached)
                moments += translations(connection, group, f"copy.{unique}")
        ends = {(unique, n): len(range(n, until, 3)) for n in range(3)}
        commit(east, groups[0], ends)
        eventually(lambda: _reaches(connection, unique, until), timeout=120, every=0.3)
        # At the end of the source: nothing is read again.
        eventually(
            lambda: [s for s in _of(groups[0], unique, east, connection) if s.lag <= 1][2:],
            every=0.3,
        )
        for group in groups:
            moments += translations(connection, group, f"copy.{unique}")
    assert len(moments) >= 9
    assert missed(moments, east, unique, connection, f"copy.{unique}") == []


def _reaches(west: Connection, topic: str, until: int) -> bool:
    positions = read_positions(west, topic).values()
    return sum(each["offset"] for each in positions) == until


def _of(group: str, name: str, east: Connection, west: Connection) -> list:
    return [each for each in mirror_status(name, east, west).groups if each.group == group]


def test_a_group_that_consumes_in_the_target_is_left_alone(
    connection: Connection, east: Connection, unique: str, mirror: Mirror
) -> None:
    created(east, unique)
    write(east, unique, 300, random.Random(1))
    own, moving = f"{unique}-own", f"{unique}-moving"
    for group in (own, moving):
        commit(east, group, {(unique, n): 100 for n in range(3)})
    with start(mirror(topics=[unique], groups=[own, moving])):
        caught_up(east, unique, connection)
        eventually(lambda: len(committed(connection, own, unique)) == 3)
        commit(connection, own, {(unique, n): 7 for n in range(3)})  # a consumer's own
        # At the end of the source, and after the marker of at least one transaction.
        eventually(lambda: min(committed(connection, moving, unique).values(), default=0) > 100)
        # A reset in the source is followed.
        commit(east, moving, {(unique, n): 0 for n in range(3)})
        eventually(lambda: set(committed(connection, moving, unique).values()) == {0})
        with Consumer(connection, group=moving) as consumer:
            consumer.subscribe([unique])
            eventually(lambda: consumer.poll(1))
            for group in (own, moving):
                commit(east, group, {(unique, n): 90 for n in range(3)})
            write(east, unique, 30, random.Random(2), at=300)
            caught_up(east, unique, connection)
            assert max(committed(connection, moving, unique).values(), default=0) < 90
        assert committed(connection, own, unique) == dict.fromkeys(range(3), 7)


def test_the_command_copies_and_shows_how_far_it_is(
    connection: Connection, east: Connection, unique: str
) -> None:
    created(east, unique)
    write(east, unique, 30, random.Random(3))
    commit(east, f"{unique}-g", {(unique, 0): 10})
    clusters = ["--from", east.brokers, "--to", connection.brokers]
    chosen = ["--topics", unique, "--groups", f"{unique}-g", "--name", unique]
    ran = run_here("mirror", "run", *clusters, *chosen, "--once")
    assert ran.returncode == 0, ran.stderr
    assert is_mirrored(east, unique, connection, unique)
    shown = CliRunner().invoke(app, ["mirror", "status", *clusters, unique, "--json"])
    document = json.loads(shown.output)
    assert [each["lag"] for each in document["partitions"]] == [0, 0, 0]
    assert document["groups"] == [
        {
            "group": f"{unique}-g",
            "topic": unique,
            "partition": 0,
            "source": 10,
            "target": 11,
            "lag": 0,
        }
    ]
    text = CliRunner().invoke(app, ["mirror", "status", *clusters, unique]).output
    assert f"{unique}\t0\t{unique}\t10\t10\t0" in text
    unknown = CliRunner().invoke(app, ["mirror", "status", *clusters, "other"])
    assert "there is no mirror 'other'" in str(unknown.exception)
