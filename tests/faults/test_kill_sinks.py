"""Kills with -9, at aimed points and at random: broken sinks are caught, and weaker promises hold.

test_events.py has the exactly-once sinks; `make faults` does both many more times and prints the table.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.suite.rounds import run
from tests.faults.suite.targets import Setting

from penstock import Connection, Delivery

KILLS = 2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture
def setting(connection: Connection, unique: str, tmp_path: Path) -> Setting:
    return Setting(connection, unique, tmp_path)


@pytest.mark.by_turns
@pytest.mark.parametrize("target", ["forgetful", "lossy"])
def test_a_sink_that_is_broken_on_purpose_is_caught(target: str, setting: Setting) -> None:
    outcome = run(target, setting, count=1)  # where it must show
    wrong = outcome.duplicated if target == "forgetful" else outcome.lost
    assert wrong > 0, outcome


@pytest.mark.by_turns
@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
def test_weaker_promises_hold_as_well(delivery: Delivery, setting: Setting) -> None:
    outcome = run("files", setting, delivery=delivery, count=KILLS)
    if delivery is Delivery.AT_LEAST_ONCE:
        assert (outcome.lost, outcome.letters_lost) == (0, 0), outcome
    else:
        assert (outcome.duplicated, outcome.letters_duplicated) == (0, 0), outcome
    assert outcome.behind == 0
