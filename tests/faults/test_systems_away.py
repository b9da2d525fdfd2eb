"""The broker, the database and the disk fail under a running pipeline: it waits and goes on, exactly."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.suite.troubles import broker_killed, database_killed

from penstock import Connection, State, start
from penstock.testing import eventually, fill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_postgresql_is_killed_and_comes_back(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    outcome = database_killed(connection, unique, tmp_path)
    assert outcome.exact, outcome


def test_the_broker_is_killed_and_comes_back(unique: str, tmp_path: Path) -> None:
    outcome = broker_killed(unique, tmp_path)
    assert outcome.exact, outcome


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
