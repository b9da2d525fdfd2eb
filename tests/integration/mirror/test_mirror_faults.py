"""Mirrors under kill -9, with clusters that go away: every record once, and no group misses one."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from tests.faults.import_process import FENCED, PATIENCE, printed, run, started, suspended
from tests.faults.kills import kills
from tests.integration.mirror.mirroring import (
    caught_up,
    created,
    is_mirrored,
    missed,
    translations,
    write,
)
from tests.services.outage import stay_away

import penstock
from penstock import Broker, Connection, Pipeline, State
from penstock.config import Connection as Cluster
from penstock.imports import start
from penstock.imports.mirror import MirrorImport
from penstock.imports.mirror.mirror_system import MirrorSystem
from penstock.imports.mirror.mirrored_partition import MirroredPartition
from penstock.kafka import GroupOffsets
from penstock.pipeline.importing import Part, Portion, Position, Reader, System
from penstock.testing import eventually

KILLS = kills(6)
MOMENTS = ("opened", "sent", "taken", "settled")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class MortalMirror(MirrorImport):
    """Copies, and is killed where a file says so: the process of the task, and nothing else."""

    name = "mortal-mirror"
    folder: Path

    def system_for(self, name: str, target: Cluster) -> System:
        return MortalSystem(name, self, target)


class MortalSystem(MirrorSystem):
    def pending(self, positions: Any) -> list[Part]:
        folder = self._options.folder  # type: ignore[attr-defined]
        return [
            MortalPartition(**{f.name: getattr(part, f.name) for f in fields(part)}, folder=folder)  # type: ignore[arg-type]
            for part in super().pending(positions)
        ]


@dataclass(frozen=True)
class MortalPartition(MirroredPartition):
    folder: Path = Path()

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        with super().open(position) as reader:
            self.die("opened")
            yield MortalReader(self, reader)

    def die(self, moment: str) -> None:
        try:
            (self.folder / f"kill-{moment}").unlink()
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


class MortalReader(Reader):
    def __init__(self, part: MortalPartition, reader: Reader) -> None:
        self._part = part
        self._reader = reader

    def take(self, most: int) -> Iterator[Portion]:
        for taken in self._reader.take(most):
            yield taken
            self._part.die("sent")
        self._part.die("taken")

    def settle(self) -> None:
        self._part.die("settled")


def test_every_record_is_copied_once_and_no_group_misses_one_after_kills_at_every_moment(
    connection: Connection, east: Connection, unique: str, tmp_path: Path
) -> None:
    created(east, unique)
    dice = random.Random(unique)
    options = {"poll": 0.1, "max_records": 100, "groups_every": 0.2, "groups": [f"{unique}-g"]}
    definition = Pipeline(
        name=unique,
        connection=connection,
        source=MortalMirror(cluster=east, topics=[unique], folder=tmp_path, **options),
        sink={"kafka": "copy.{topic}"},
        delivery="exactly-once",
        restart={"wait": "50ms", "longest": "500ms", "limit": 50},
    )
    until, moments = 0, []
    with start(definition) as running, GroupOffsets(east, f"{unique}-g") as group:
        for number in range(KILLS):
            token = tmp_path / f"kill-{MOMENTS[number % len(MOMENTS)]}"
            token.touch()
            count = dice.randrange(100, 400)
            write(east, unique, count, dice, at=until)
            until += count
            group.commit({(unique, n): dice.randrange(until // 3) for n in range(3)})
            eventually(lambda token=token: not token.exists(), timeout=120)
            moments += translations(connection, f"{unique}-g", f"copy.{unique}")
        caught_up(east, unique, connection, f"copy.{unique}")
        # On a busy machine offsets may have been translated only now.
        moments += eventually(
            lambda: translations(connection, f"{unique}-g", f"copy.{unique}"), timeout=120
        )
        assert running.is_active
    assert is_mirrored(east, unique, connection, f"copy.{unique}")
    assert missed(moments, east, unique, connection, f"copy.{unique}") == []
    print(f"mirror: {KILLS} kills, {until} records, none lost, none twice; {len(moments)} offsets")


def test_clusters_that_go_away_are_waited_for(
    connection: Connection, east_broker: Broker, unique: str, mirror: Any
) -> None:
    east = east_broker.connection
    there, back = f"{unique}-there", f"{unique}-back"
    created(east, there)
    created(connection, back)
    inward = mirror(topics=[there])
    outward = mirror(topics=[back], source=connection, target=east)
    with start(inward) as first, start(outward) as second:
        write(east, there, 300, random.Random(1))
        write(connection, back, 300, random.Random(2))
        caught_up(east, there, connection)
        caught_up(connection, back, east)
        east_broker.kill()
        try:
            write(connection, back, 300, random.Random(3), at=300)
            for running in (first, second):
                eventually(
                    lambda each=running: each.progress().state is State.RETRYING, timeout=240
                )
            stay_away()
        finally:
            east_broker.restart()
        write(east, there, 300, random.Random(4), at=300)
        caught_up(east, there, connection)
        caught_up(connection, back, east)
        assert first.is_active
        assert second.is_active


# In the driver: between two rounds. In a task: before the commit, and after it.
POINTS = (
    "penstock.kafka.producing.record_transaction:Transaction.commit|before|2",
    "penstock.imports.part_task:position_record|after|1",
    "penstock.imports.rounds:Rounds.run|before|2",
)


@pytest.fixture
def definition(connection: Connection, east: Connection, unique: str, tmp_path: Path) -> Path:
    file = tmp_path / "mirror.yaml"
    file.write_text(
        f"name: {unique}\n"
        f"connection: {{brokers: '{connection.brokers}'}}\n"
        f"source: {{mirror: {{cluster: {{brokers: '{east.brokers}'}}, topics: {unique}, "
        "max_records: 100, poll: 200ms}}\n"
        'sink: {kafka: "{topic}"}\n'
    )
    return file


def test_kills_of_the_whole_process_and_one_that_was_suspended(
    connection: Connection, east: Connection, unique: str, definition: Path
) -> None:
    created(east, unique)
    for number, point in enumerate(POINTS):
        write(east, unique, 500, random.Random(number), at=number * 500)
        assert run(definition, point) == -signal.SIGKILL, point
    # Something that no one has copied yet: when it has arrived, the process is past its start.
    write(east, unique, 50, random.Random(6), at=6_000)
    assert not is_mirrored(east, unique, connection, unique)
    first = started(definition)
    try:
        caught_up(east, unique, connection)
        with suspended(first) as wake:
            write(east, unique, 500, random.Random(7), at=7_000)
            with penstock.start(penstock.read_pipeline(definition)) as second:
                caught_up(east, unique, connection)
                wake()
                assert first.wait(PATIENCE) == 1
                assert FENCED in printed(definition)
                write(east, unique, 500, random.Random(8), at=8_000)
                caught_up(east, unique, connection)
                assert second.is_active
    finally:
        first.kill()
