"""Any interleaving of workers, kills, suspensions, outages and clocks: one holder at a time."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.control.control_world import Worker, World

from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired
from penstock.errors import ConfigError

NAMES = ("a", "b", "c", "d")
_template: list[Path] = []


@pytest.fixture(autouse=True)
def _a_template(empty_store: Path) -> None:
    _template[:] = [empty_store]


class Control(RuleBasedStateMachine):
    """The clock of the database may be set back, never ahead."""

    @initialize(rates=st.tuples(*[st.sampled_from((0.98, 1.0, 1.02))] * 3))
    def begin(self, rates: tuple[float, ...]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-control-"))
        shutil.copy(_template[0] / "control.sqlite", self.folder)
        self.world = World.open(self.folder / "control.sqlite")
        self.is_down = False
        for number, rate in enumerate(rates):
            self.world.add_worker(offset=10_000.0 * number - 5_000, rate=rate)
        for name in NAMES[:2]:
            self.world.deploy(name)

    def _awake(self, number: int) -> Worker | None:
        workers = [worker for worker in self.world.workers if not worker.is_suspended]
        return workers[number % len(workers)] if workers else None

    @rule(seconds=st.sampled_from((0.1, 1.0, 4.0, 8.0, 13.6, 15.1, 40.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @precondition(lambda self: not self.is_down)
    @rule(number=st.integers(0, 5), half=st.booleans())
    def renew(self, number: int, half: bool) -> None:
        if worker := self._awake(number):
            worker.send_renewal()
            if not half:
                worker.receive_renewal()

    @rule(number=st.integers(0, 5))
    def receive_a_late_reply(self, number: int) -> None:
        if worker := self._awake(number):
            worker.receive_renewal()

    @precondition(lambda self: not self.is_down)
    @rule(number=st.integers(0, 5), most=st.sampled_from((0, 1, 2, 99)))
    def look_and_act(self, number: int, most: int) -> None:
        if worker := self._awake(number):
            worker.look()
            worker.act(most)

    @precondition(lambda self: not self.is_down)
    @rule(number=st.integers(0, 5))
    def look(self, number: int) -> None:
        if worker := self._awake(number):
            worker.look()

    @precondition(lambda self: not self.is_down)
    @rule(number=st.integers(0, 5))
    def act_on_an_old_view(self, number: int) -> None:
        if worker := self._awake(number):
            worker.act()

    @rule(number=st.integers(0, 5), name=st.sampled_from(NAMES))
    def write(self, number: int, name: str) -> None:
        if worker := self._awake(number):
            worker.write(name)

    @rule(number=st.integers(0, 5))
    def suspend(self, number: int) -> None:
        if worker := self._awake(number):
            worker.is_suspended = True

    @rule()
    def wake_all(self) -> None:
        for worker in self.world.workers:
            worker.is_suspended = False

    @precondition(lambda self: not self.is_down)
    @rule(number=st.integers(0, 5))
    def kill_and_start_another(self, number: int) -> None:
        if worker := self._awake(number):
            self.world.workers.remove(worker)
            self.world.add_worker(offset=3.0)

    @precondition(lambda self: not self.is_down)
    @rule(number=st.integers(0, 5))
    def drain(self, number: int) -> None:
        if worker := self._awake(number):
            self.world.store.workers.drain(worker.id)

    @precondition(lambda self: not self.is_down)
    @rule(number=st.integers(0, 5), name=st.sampled_from(NAMES))
    def fail(self, number: int, name: str) -> None:
        if worker := self._awake(number):
            worker.fail(name)

    @rule(down=st.booleans())
    def database_goes_or_comes(self, down: bool) -> None:
        self.is_down = down

    @rule(seconds=st.sampled_from((1.0, 30.0, 3600.0)))
    def database_clock_is_set_back(self, seconds: float) -> None:
        self.world.database.seconds -= seconds

    @precondition(lambda self: not self.is_down)
    @rule(
        name=st.sampled_from(NAMES),
        what=st.sampled_from((*Desired, "deploy", "restart")),
        version=st.integers(0, 3),
    )
    def ask(self, name: str, what: Desired | str, version: int) -> None:
        store: ControlStore = self.world.store
        try:
            if what == "deploy":
                self.world.deploy(name, version)
            elif what == "restart":
                store.deployments.restart(name, by="ann")
            else:
                store.deployments.set_desired(name, Desired(what), by="ann")
        except ConfigError:
            pass  # it does not exist, or is being deleted

    @invariant()
    def at_most_one_believes_to_hold_a_deployment(self) -> None:
        if hasattr(self, "world"):
            for name in NAMES:
                assert len(self.world.believers(name)) <= 1

    @invariant()
    def no_sink_had_to_refuse_a_write(self) -> None:
        if hasattr(self, "world"):
            assert self.world.refused == 0

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.is_down = False
        self.world.add_worker(offset=7.0)
        self.world.settle()
        assert self.world.unsettled() == {}
        self.world.store.close()
        shutil.rmtree(self.folder)


class ControlWithJumps(Control):
    """The clock of the database is set ahead, too: tokens are what sinks decide by then."""

    @rule(seconds=st.sampled_from((10.0, 100.0, 86_400.0)))
    def database_clock_is_set_ahead(self, seconds: float) -> None:
        self.world.database.seconds += seconds

    @invariant()
    def at_most_one_believes_to_hold_a_deployment(self) -> None:
        if hasattr(self, "world"):
            for name in NAMES:
                tokens = self.world.believers(name)
                assert len(tokens) == len(set(tokens))

    @invariant()
    def no_sink_had_to_refuse_a_write(self) -> None:
        """With a clock that jumps ahead they have to: by the token, which only increases."""
        if hasattr(self, "world"):
            for tokens in self.world.writes.values():
                assert tokens == sorted(tokens)


# Each step is statements in a real file: an example is printed as it was found, not made smaller.
_QUICK = settings(stateful_step_count=40, deadline=None, phases=[Phase.explicit, Phase.generate])
TestControl = Control.TestCase
TestControl.settings = settings(_QUICK, max_examples=20)
TestControlWithJumps = ControlWithJumps.TestCase
TestControlWithJumps.settings = settings(_QUICK, max_examples=10)
