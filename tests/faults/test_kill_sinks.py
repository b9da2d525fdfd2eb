"""Every exactly-once sink is killed with -9, at aimed points and at random: each record is in it once.

`make faults` does the same many more times and prints the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.faults.suite.rounds import Driver, run
from tests.faults.suite.targets import Setting
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection, Delivery
from penstock.testing import fill

KILLS = 2
# `make faults` has more of them: upserts, JSON lines, lakes that are compacted.
SINKS = ["files", "files, compacted", "delta", "iceberg", "jdbc", "kafka"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module", autouse=True)
def _archive_of_classes(connection: Connection, tmp_path_factory: Any) -> None:
    """One run that ends in order writes Java's class archive: all that are killed start faster by it."""
    name = f"warm-{uuid4().hex[:8]}"
    fill(connection, name, [{"n": 1}])
    setting = Setting(connection, name, tmp_path_factory.mktemp("warm"))
    driver = Driver("files", setting, Delivery.EXACTLY_ONCE, "--once")
    driver.until_batches(1_000_000)
    assert driver.end() == 0, driver.told()


@pytest.fixture
def setting(connection: Connection, unique: str, tmp_path: Path, request: Any) -> Setting:
    where: dict[str, Any] = {}
    if "jdbc" in request.node.callspec.params.get("target", ""):
        server: Postgres = request.getfixturevalue("postgres")
        where = {"postgres": server.url, "password": PASSWORD}
    return Setting(connection, unique, tmp_path, **where)


@pytest.mark.parametrize("target", SINKS)
def test_an_exactly_once_sink_has_each_record_once_after_kills(
    target: str, setting: Setting
) -> None:
    outcome = run(target, setting, count=KILLS)
    assert (outcome.kills, outcome.exact) == (KILLS, True), outcome
    assert outcome.records > 0
    assert outcome.letters > 0


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
