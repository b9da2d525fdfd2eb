"""Kills with -9, at aimed points and at random: broken sinks are caught, and weaker promises hold.

test_events.py has the exactly-once sinks; `make faults` does both many more times and prints the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.faults.suite.rounds import Driver, run
from tests.faults.suite.targets import Setting

from penstock import Connection, Delivery
from penstock.testing import fill

KILLS = 2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module", autouse=True)
def _archive_of_classes(connection: Connection, tmp_path_factory: Any) -> None:
    """One run that ends in order writes Java's class archive: all that are killed start faster by it."""
    name = f"warm-{uuid4().hex[:8]}"
    fill(connection, name, [{"n": 1}])
    setting = Setting(connection, name, tmp_path_factory.mktemp("warm"))
    driver = Driver("files", setting, Delivery.EXACTLY_ONCE, "--once")
    driver.until_batches(1_000_000)
    assert driver.end() == 0, driver.last_output()


@pytest.fixture
def setting(connection: Connection, unique: str, tmp_path: Path) -> Setting:
    return Setting(connection, unique, tmp_path)


@pytest.mark.parametrize("target", ["forgetful", "lossy"])
def test_a_sink_that_is_broken_on_purpose_is_caught(target: str, setting: Setting) -> None:
    outcome = run(target, setting, count=KILLS + 1)
    wrong = outcome.duplicated if target == "forgetful" else outcome.lost
    assert wrong > 0, outcome


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
def test_weaker_promises_hold_as_well(delivery: Delivery, setting: Setting) -> None:
    outcome = run("files", setting, delivery=delivery, count=KILLS)
    if delivery is Delivery.AT_LEAST_ONCE:
        assert (outcome.lost, outcome.letters_lost) == (0, 0), outcome
    else:
        assert (outcome.duplicated, outcome.letters_duplicated) == (0, 0), outcome
    assert outcome.behind == 0
