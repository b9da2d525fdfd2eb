"""Every exactly-once sink is killed with -9, at aimed points and at random: each record is in it once.

`make faults` does the same many more times and prints the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.faults.suite.rounds import run
from tests.faults.suite.targets import Setting
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection, Delivery

KILLS = 3
# `make faults` has more of them: upserts, JSON lines, lakes that are compacted.
SINKS = ["files", "files, compacted", "delta", "iceberg", "jdbc", "kafka"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


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
