"""The broker, the database and the disk fail under a running pipeline: it waits and goes on, exactly."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.database_away import away
from tests.faults.suite.troubles import broker_killed, database_killed
from tests.services.mariadb import MariaDb
from tests.services.outage import SECONDS, stay_away
from tests.services.postgres import Postgres

from penstock import Connection, Pipeline, State, start
from penstock.testing import eventually, fill, read_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_postgresql_is_killed_and_comes_back(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    outcome = database_killed(connection, unique, tmp_path)
    assert outcome.exact, outcome


def test_the_broker_is_killed_and_comes_back(unique: str, tmp_path: Path) -> None:
    outcome = broker_killed(unique, tmp_path)
    assert outcome.exact, outcome


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", [Postgres, MariaDb])
def test_a_database_that_is_away_is_waited_for_by_source_and_sink(
    connection: Connection, unique: str, tmp_path: Path, kind: type[Postgres | MariaDb]
) -> None:
    with kind() as server:
        outcome = away(connection, server, unique, tmp_path, SECONDS)
    print(f"{kind.__name__}: {outcome}")
    assert outcome.is_exact, outcome


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes; mounting one needs root, as installing the other services does."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_is_waited_for_and_nothing_is_lost(
    connection: Connection, topic: Any, pipeline: Any, small_disk: Path
) -> None:
    import pyarrow.dataset as ds

    values = [{"n": n, "text": f"{n * 7919:064x}"} for n in range(60_000)]
    fill(connection, topic(), values)
    definition = pipeline(
        source={"kafka": {"topics": topic(), "max_records_per_batch": 10_000}},
        decode={"json": {"schema": "n bigint, text string"}},
        sink={"files": {"path": str(small_disk / "table"), "compression": "none"}},
        delivery="exactly-once",
        restart={"wait": "200ms", "longest": "1s"},
    )
    with start(definition, once=True) as running:
        waiting = eventually(
            lambda: (p := running.progress()).state is State.RETRYING and p, timeout=240
        )
        assert "no space left under" in str(waiting.last_error)
        subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
        assert running.wait(280)
    files = [str(file) for file in (small_disk / "table").glob("*.parquet")]
    found = ds.dataset(files, format="parquet").to_table().column("n").to_pylist()
    assert sorted(found) == list(range(60_000))


class Disk:
    """A folder that is mounted, which needs root, and can be away with what is in it."""

    def __init__(self, folder: Path) -> None:
        self.mount = folder / "disk"
        self._inside = folder / "inside"
        for each in (self.mount, self._inside):
            each.mkdir()
        self.bring()

    def bring(self) -> None:
        subprocess.run(["mount", "--bind", self._inside, self.mount], check=True)

    def take(self) -> None:
        subprocess.run(["umount", "-l", self.mount], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    mounted = Disk(tmp_path)
    yield mounted
    subprocess.run(["umount", "-l", mounted.mount], check=False)


def test_a_disk_with_files_that_goes_away_and_comes_back_is_waited_for(
    connection: Connection, unique: str, disk: Disk
) -> None:
    folder = disk.mount / "logs"
    folder.mkdir()

    def append(numbers: range) -> None:
        with (folder / "app.log").open("a") as out:
            out.writelines(f"{n}\n" for n in numbers)

    def numbers() -> list[int]:
        return [int(record.value or b"") for record in read_all(connection, unique)]

    append(range(1000))
    definition = Pipeline(
        name=unique,
        connection=connection,
        source={"files": {"folder": str(folder), "poll": "200ms"}},
        sink={"kafka": unique},
        delivery="exactly-once",
        restart={"wait": "100ms", "longest": "500ms"},
    )
    with start(definition) as running:
        eventually(lambda: len(numbers()) == 1000, timeout=120)
        disk.take()
        waiting = eventually(
            lambda: (p := running.progress()).state is State.RETRYING and p, timeout=120
        )
        assert "logs is not there" in str(waiting.last_error)
        stay_away()
        disk.bring()
        append(range(1000, 2000))
        eventually(lambda: len(numbers()) >= 2000, timeout=120)
        eventually(lambda: running.progress().state is State.RUNNING, timeout=60)
    assert numbers() == [*range(2000)]
