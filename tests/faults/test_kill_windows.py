"""Windowed sums under kill -9: the table is the one that an undisturbed run gives.

`make faults` runs this with twenty kills, a test run with fewer: the process takes its time to start.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow.dataset as ds
import pytest
from tests.faults.windows_driver import definition
from tests.integration.stateful.flows import dead, trade

from penstock import Admin, Connection, start
from penstock.testing import eventually, fill

KILLS = int(os.environ.get("PENSTOCK_WINDOW_KILLS", "2"))
ROOT = Path(__file__).parents[2]
PATIENCE = 240.0
# A batch of the last day of trades makes all windows before it final.
FINAL = 7 * 24 * 3600

pytestmark = [
    pytest.mark.slow,
    pytest.mark.by_turns("kills"),
    pytest.mark.timeout(600 + 120 * KILLS),
]


def windows(folder: Path) -> list[tuple[Any, ...]]:
    rows = ds.dataset(folder, exclude_invalid_files=True).to_table().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_sums_are_those_of_an_undisturbed_run(
    connection: Connection, topic: Any, unique: str, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    killed, calm = (
        definition(connection.brokers, f"{unique}-{kind}", topic(), str(tmp_path))
        for kind in ("killed", "calm")
    )
    sent = 0
    for _ in range(KILLS):
        sent = send(connection, topic(), sent, dice)
        live_and_die(connection, killed.name, topic(), tmp_path, dice)
    send(connection, topic(), sent, dice)
    fill(connection, topic(), [trade(-1, FINAL, "end"), trade(-2, FINAL, "end")], partitions=2)
    for one in (killed, calm):
        with start(one, once=True) as running:
            assert running.wait(PATIENCE), running.progress()

    expected = windows(tmp_path / calm.name)
    assert len(expected) > 3 * KILLS
    assert windows(tmp_path / killed.name) == expected, f"seed {seed}"
    with Admin(connection) as admin:
        committed = admin.committed(killed.group_id)
        assert committed == admin.latest(committed)
    assert dead(connection, killed) == dead(connection, calm) == []


def send(connection: Connection, topic: str, first: int, dice: random.Random) -> int:
    """Send some thousand trades, each tenth of them twice, not quite in order; return the next number."""
    numbers = list(range(first, first + 2000))
    numbers += dice.sample(numbers, 200)
    numbers.sort(key=lambda n: n + dice.randint(0, 100))
    trades = [trade(n, n / 40, "ABC"[n % 3], size=n % 7) for n in numbers]
    fill(connection, topic, trades, partitions=2)
    return first + 2000


def live_and_die(
    connection: Connection, name: str, topic: str, folder: Path, dice: random.Random
) -> None:
    """Let the process run until it commits something, then kill it a moment later."""
    command = [sys.executable, "-m", "tests.faults.windows_driver"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (folder / "log").open("ab") as log, Admin(connection) as admin:
        before = admin.committed(name)
        process = subprocess.Popen(
            [*command, connection.brokers, name, topic, str(folder)],
            cwd=ROOT, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            eventually(lambda: admin.committed(name) not in ({}, before), PATIENCE)
            time.sleep(dice.uniform(0, 2))
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    for child in family:
        if child.is_running():
            child.kill()
    process.wait(30)
