"""A client that is asked from several threads while topics come and go must outlive it.

librdkafka's admin client does not: it was killed by this within a minute (docs/decisions/018).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock import Connection

ROUNDS = 150
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def test_the_process_outlives_questions_about_topics_that_move(
    connection: Connection, unique: str
) -> None:
    command = [sys.executable, "-m", "tests.faults.asking_driver"]
    ended = subprocess.run(
        [*command, connection.brokers, unique, str(ROUNDS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr
