"""The takeover of a connector at the points where a server fails, and what it does with old positions.

The two servers are replaced by what they remember, so that any request can fail. A real cluster is in
tests/integration/connect/test_takeover.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from penstock.connect.takeover.assessment import Assessment, assess
from penstock.connect.takeover.connect_cluster import ConnectCluster, Listed
from penstock.connect.takeover.taking_over import Outcome, TakeOver
from penstock.connect.worker_defaults import WorkerDefaults
from penstock.errors import PenstockError, SetupError

RUNNING = Listed("in", {"connector.class": "FileStreamSource", "name": "in"}, "source", "RUNNING")
Offset = dict[str, Any]
FIRST, SECOND = ({"partition": {"filename": each}, "offset": {"position": 5}} for each in "ab")


@dataclass
class Remembered:
    """A server with one connector; requests in `failing` are carried out, and their reply is lost."""

    url: str
    states: list[str]
    kept: list[Offset] = field(default_factory=list)
    failing: tuple[str, ...] = ()

    def create(self, _name: str, _config: dict[str, str]) -> None:
        self._done("STOPPED")

    def delete(self, _name: str) -> None:
        self._done("deleted")

    def ask_for(self, _name: str, state: str) -> None:
        self._done(state)

    def is_stopped(self, _name: str) -> bool:
        return self.states[-1] == "STOPPED"

    def offsets(self, _name: str) -> list[Offset]:
        return [*self.kept]

    def set_offsets(self, _name: str, offsets: list[Offset], _again: Callable[..., Any]) -> None:
        places = [each["partition"] for each in offsets]
        self.kept = [*(each for each in self.kept if each["partition"] not in places), *offsets]

    def reset_offsets(self, _name: str, _again: Callable[..., Any]) -> None:
        self.kept = []

    def _done(self, state: str) -> None:
        self.states.append(state)
        if state in self.failing:
            raise SetupError(f"the connection of {self.url} was lost")


def taken(
    there: Remembered, here: Remembered, *, exists: bool = False
) -> tuple[Outcome | PenstockError, list[str]]:
    notes: list[str] = []
    servers = [cast("ConnectCluster", each) for each in (there, here)]
    found = Assessment(RUNNING, RUNNING.config, exists=exists)
    try:
        return TakeOver(servers[0], servers[1], True, notes.append).take(found), notes
    except PenstockError as error:
        return error, notes


def test_positions_of_an_earlier_connector_of_the_name_are_not_those_of_the_new_one() -> None:
    there, here = Remembered("there", ["RUNNING"], [FIRST]), Remembered("here", [], [SECOND])
    assert taken(there, here)[0] is Outcome.TAKEN
    assert here.kept == [FIRST]
    never_ran = Remembered("there", ["RUNNING"])
    here = Remembered("here", [], [SECOND])
    assert taken(never_ran, here)[0] is Outcome.TAKEN
    assert here.kept == []


@pytest.mark.parametrize(("exists", "last"), [(True, "STOPPED"), (False, "deleted")])
def test_a_connector_never_runs_at_both(exists: bool, last: str) -> None:
    there = Remembered("there", ["RUNNING"])
    here = Remembered("here", ["STOPPED"], failing=("RUNNING",))
    error, notes = taken(there, here, exists=exists)
    assert isinstance(error, SetupError)
    assert (here.states[-2:], there.states[-1]) == (["RUNNING", last], "RUNNING")
    assert notes[-1] == "in: it goes on there"


def test_a_connector_that_cannot_go_on_there_is_reported_as_such() -> None:
    there = Remembered("there", ["RUNNING"], failing=("RUNNING",))
    _, notes = taken(there, Remembered("here", ["STOPPED"], failing=("RUNNING",)))
    assert "in: it goes on there" not in notes
    assert "it is STOPPED there, and could not be resumed" in notes[-1]
    assert "send PUT /connectors/in/resume to there" in notes[-1]


def test_providers_of_the_workers_file_are_known() -> None:
    class Accepting:
        def validation(self, _config: dict[str, str]) -> dict[str, Any]:
            return {"configs": [], "warnings": []}

    config = {**RUNNING.config, "x.password": "${secrets:/run/db:pw}"}
    there, here = Listed("in", config, "source", "RUNNING"), cast("ConnectCluster", Accepting())
    converters = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    knowing = WorkerDefaults(converters=converters, providers={"secrets": provider})
    assert assess(there, here, {}, knowing).can_run
    assert "no provider 'secrets'" in assess(there, here, {}, WorkerDefaults()).problems[0]
