"""A process with three jobs is killed with -9: all go on, exactly, and their counts go on too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.dataset as ds
import pytest
from tests.faults.suite.load import Load, is_bad
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection
from penstock.jobs import Store, job_stats
from penstock.testing import eventually, read_all

ROOT = Path(__file__).parents[2]
KILLS = 2
PATIENCE = 240.0

pytestmark = [pytest.mark.slow, pytest.mark.by_turns("kills"), pytest.mark.timeout(1200)]


class Process:
    """The process with the jobs, and its Java process."""

    def __init__(self, *arguments: str, log: Path) -> None:
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.jobs_process", *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stderr=self._log,
            stdout=self._log,
        )

    def kill(self) -> None:
        if self._process.poll() is not None:
            return
        family = psutil.Process(self._process.pid).children(recursive=True)
        self._process.send_signal(signal.SIGKILL)
        for process in family:
            with suppress(psutil.NoSuchProcess):  # some end with their parent
                process.kill()
        self._process.wait(30)
        self._log.close()


@pytest.fixture
def begin(
    connection: Connection, unique: str, tmp_path: Path, postgres: Postgres
) -> Iterator[Callable[[], Process]]:
    database = json.dumps({"url": postgres.url, "password": PASSWORD})
    arguments = (
        str(tmp_path / "jobs.sqlite"), unique, connection.brokers, str(tmp_path), database
    )  # fmt: skip
    begun: list[Process] = []

    def start() -> Process:
        begun.append(Process(*arguments, log=tmp_path / "log"))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()


def test_three_jobs_go_on_after_every_kill(
    begin: Callable[[], Process],
    connection: Connection,
    unique: str,
    tmp_path: Path,
    postgres: Postgres,
) -> None:
    store = Store(tmp_path / "jobs.sqlite")

    def counts() -> dict[str, int]:
        found = job_stats(store)
        handled = found["processedMsgCount"] + found["failedMsgCount"]
        return dict(zip(found["actionName"], handled, strict=True))

    def all_go_on(before: Counter[str]) -> None:
        eventually(lambda: _all_went_on(counts(), before), PATIENCE, every=0.2)

    with Load(connection, unique) as load:
        process, before = begin(), Counter[str]()
        for _ in range(KILLS):
            all_go_on(before)
            process.kill()
            before = Counter(counts())
            process = begin()
        all_go_on(before)
    eventually(lambda: set(counts().values()) == {load.sent}, PATIENCE, every=0.5)
    process.kill()

    good = [n for n in range(load.sent) if not is_bad(n)]
    bad = load.sent - len(good)
    assert sorted(_from_files(tmp_path / "table")) == good
    assert sorted(postgres.values(unique, "n")) == good
    assert set(job_stats(store)["failedMsgCount"]) == {bad}
    for kind in ("files", "database", "memory"):
        assert len(read_all(connection, f"{unique}-{kind}.dead-letters")) == bad


def _all_went_on(now: dict[str, int], before: dict[str, int]) -> bool:
    return len(now) == 3 and all(count > before[name] for name, count in now.items())


def _from_files(folder: Path) -> list[Any]:
    files = [str(file) for file in folder.glob("*.parquet")]
    return ds.dataset(files, format="parquet").to_table().column("n").to_pylist()
