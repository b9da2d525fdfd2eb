"""Imports under kill -9, of tasks and of everything at once: nothing is lost, nothing is there twice."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tests.faults.import_process import run, started
from tests.faults.kills import kills
from tests.integration.imports.counting import Counter as CounterPart
from tests.integration.imports.counting import Counters, Counting, CountingImport

import penstock
from penstock import Admin, Connection, Pipeline
from penstock.pipeline.importing import Part, Portion, Position, Reader, System
from penstock.testing import eventually, read_all

KILLS = kills(8)
PARTS = "abc"
MOMENTS = ("opened", "sent", "taken", "settled")

pytestmark = [pytest.mark.slow, pytest.mark.by_turns("kills"), pytest.mark.timeout(1200)]


class MortalImport(CountingImport):
    """Counts, and is killed where a file says so: the process of the task, and nothing else."""

    name = "mortal"

    def system(self) -> System:
        return MortalCounters(self.folder)


class MortalCounters(Counters):
    def pending(self, positions: dict[str, Position]) -> list[Part]:  # type: ignore[override]
        return [MortalCounter(part.file) for part in super().pending(positions)]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class MortalCounter(CounterPart):
    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        reader = MortalCounting(self, position["n"] if position else 0)
        reader.die("opened")
        yield reader


class MortalCounting(Counting):
    def take(self, most: int) -> Iterator[Portion]:
        for taken in super().take(most):
            yield taken
            self.die("sent")
        self.die("taken")

    def settle(self) -> None:
        self.die("settled")

    def die(self, moment: str) -> None:
        try:
            (self.part.file.parent / f"kill-{moment}").unlink()
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def counted(connection: Connection, topic: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for record in read_all(connection, topic):
        found[record.key.decode()].append(int(record.value))
    return {part: sorted(numbers) for part, numbers in found.items()}


def wanted(until: int) -> list[int]:
    return [n for n in range(until) if n % 1000 != 999]


def test_every_record_is_there_once_after_kills_of_tasks_at_every_moment(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    dice = random.Random(unique)
    definition = Pipeline(
        name=unique,
        connection=connection,
        source=MortalImport(folder=tmp_path, poll=0.1, max_records=400),
        sink={"kafka": unique},
        delivery="exactly-once",
        # Kills follow each other: many rounds in a row have a task that was killed.
        restart={"wait": "100ms", "longest": "1s", "limit": 100},
    )
    until = 0
    with penstock.start(definition) as running:
        for number in range(KILLS):
            token = tmp_path / f"kill-{MOMENTS[number % len(MOMENTS)]}"
            token.touch()
            until += dice.randrange(300, 900)
            for part in PARTS:
                (tmp_path / f"{part}.count").write_text(str(until))
            eventually(lambda token=token: not token.exists(), timeout=120)
        rows = len(PARTS) * until
        eventually(
            lambda: (
                sum(map(len, counted(connection, unique).values()))
                + len(read_all(connection, f"{unique}.dead-letters"))
                >= rows
            ),
            timeout=120,
            every=1,
        )
        assert running.is_active
    assert counted(connection, unique) == dict.fromkeys(PARTS, wanted(until))
    letters = Counter(int(each.value) for each in read_all(connection, f"{unique}.dead-letters"))
    assert letters == dict.fromkeys(range(999, until, 1000), len(PARTS))
    print(f"imports: {KILLS} kills, {rows} records, none lost, none twice")


# In the driver: at its claim, and between two rounds. In a task: before the commit, and after it.
POINTS = (
    "penstock.kafka.producing.record_transaction:Transaction.commit|before|1",
    "penstock.imports.part_task:position_record|after|1",
    "penstock.pipeline.importing:Reader.settle|before|1",
    "penstock.imports.rounds:Rounds.run|before|2",
)


@pytest.fixture
def lines(connection: Connection, unique: str, tmp_path: Path) -> Lines:
    """A folder with two files, and the definition of an import of their lines."""
    folder = tmp_path / "in"
    folder.mkdir()
    definition = tmp_path / "lines.yaml"
    definition.write_text(
        f"name: {unique}\n"
        f"connection: {{brokers: '{connection.brokers}'}}\n"
        f"source: {{files: {{folder: '{folder}', max_records: 300, poll: 200ms}}}}\n"
        f"sink: {{kafka: {unique}}}\n"
    )
    return Lines(folder, definition)


@dataclass
class Lines:
    """Numbers, each of which is a line of both files."""

    folder: Path
    definition: Path
    count: int = 0

    def append(self, more: int) -> None:
        for file in "ab":
            with (self.folder / f"{file}.log").open("a") as out:
                out.writelines(f"{n}\n" for n in range(self.count, self.count + more))
        self.count += more

    def are_once_in(self, connection: Connection, topic: str) -> bool:
        found = Counter(int(record.value) for record in read_all(connection, topic))
        return found == dict.fromkeys(range(self.count), 2)


def test_every_line_is_there_once_after_kills_of_the_whole_process(
    connection: Connection, unique: str, lines: Lines
) -> None:
    for point in POINTS:
        lines.append(1500)
        assert run(lines.definition, point) == -signal.SIGKILL, point
    with penstock.start(penstock.read_pipeline(lines.definition), once=True) as last:
        assert last.wait(240), last.progress()
    assert lines.are_once_in(connection, unique)


def test_an_import_goes_on_after_the_death_of_java(
    connection: Connection, unique: str, lines: Lines
) -> None:
    lines.append(500)
    process = started(lines.definition)
    try:
        eventually(lambda: _exists(connection, unique), timeout=120)
        eventually(lambda: lines.are_once_in(connection, unique), timeout=120, every=0.5)
        family = psutil.Process(process.pid).children(recursive=True)
        (java,) = [child for child in family if child.name() == "java"]
        java.kill()
        lines.append(500)
        eventually(lambda: lines.are_once_in(connection, unique), timeout=120, every=0.5)
        assert process.poll() is None
    finally:
        process.kill()


def _exists(connection: Connection, topic: str) -> bool:
    with Admin(connection) as admin:
        return topic in {each.name for each in admin.topics()}
