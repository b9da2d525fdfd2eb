"""Any interleaving of workers, kills, suspensions, outages and clocks: one holder at a time."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.control.control_world import Worker, World

from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired
from penstock.errors import ConfigError

NAMES = ("a", "b", "c", "d")
NUMBER = st.integers(0, 2)
_template: list[Path] = []


@pytest.fixture(autouse=True)
def _a_template(empty_store: Path) -> None:
    _template[:] = [empty_store]


class Control(RuleBasedStateMachine):
    """The clock of the database may be set back, never ahead.

    A database that is away is the same as time in which nothing is sent, or replies that are lost.
    """

    @initialize(rates=st.tuples(*[st.sampled_from((0.98, 1.0, 1.02))] * 3))
    def begin(self, rates: tuple[float, ...]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-control-"))
        shutil.copy(_template[0] / "control.sqlite", self.folder)
        self.world = World.open(self.folder / "control.sqlite")
        for number, rate in enumerate(rates):
            self.world.add_worker(offset=10_000.0 * number - 5_000, rate=rate)
        for name in NAMES[:2]:
            self.world.deploy(name)

    def _awake(self, number: int) -> Worker | None:
        workers = [worker for worker in self.world.workers if not worker.is_suspended]
        return workers[number % len(workers)] if workers else None

    @rule(seconds=st.sampled_from((1.0, 4.0, 8.0, 13.6, 15.1)))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(number=NUMBER, delay=st.sampled_from((0.0, 0.0, 5.0, 12.0)))
    def renew_and_receive_the_reply_later(self, number: int, delay: float) -> None:
        if worker := self._awake(number):
            worker.send_renewal()
            self.world.pass_time(delay)
            worker.receive_renewal()

    @rule(number=NUMBER)
    def lose_the_reply_to_a_renewal(self, number: int) -> None:
        if worker := self._awake(number):
            worker.send_renewal()
            worker.renewal = None

    @rule()
    def everyone_works(self) -> None:
        for worker in self.world.workers:
            if not worker.is_suspended:
                worker.look()
                worker.act()

    @rule(number=NUMBER, most=st.sampled_from((0, 1, 99)))
    def one_works(self, number: int, most: int) -> None:
        if worker := self._awake(number):
            worker.look()
            worker.act(most)

    @rule(number=NUMBER)
    def look(self, number: int) -> None:
        if worker := self._awake(number):
            worker.look()

    @rule(number=NUMBER)
    def act_on_an_old_view(self, number: int) -> None:
        if worker := self._awake(number):
            worker.act()

    @rule(number=NUMBER, name=st.sampled_from(NAMES[:2]))
    def claim_whatever_the_view_says(self, number: int, name: str) -> None:
        """As with a view from any time: the database alone decides."""
        if worker := self._awake(number):
            worker.claim_blindly(name)

    @rule(number=NUMBER, name=st.sampled_from(NAMES[:2]))
    def lose_the_reply_to_a_claim(self, number: int, name: str) -> None:
        if (worker := self._awake(number)) and name not in worker.local:
            self.world.store.leases.claim(name, worker.id)

    @rule()
    def everyone_writes(self) -> None:
        for worker in self.world.workers:
            if not worker.is_suspended:
                for name in NAMES:
                    worker.write(name)

    @rule(number=NUMBER, what=st.sampled_from(("suspend", "wake", "kill", "drain", "fail")))
    def disturb(self, number: int, what: str) -> None:
        worker = self._awake(number)
        if what == "wake":
            for each in self.world.workers:
                each.is_suspended = False
        elif worker is None:
            return
        elif what == "suspend":
            worker.is_suspended = True
        elif what == "kill":
            self.world.workers.remove(worker)
            self.world.add_worker(offset=3.0)
        elif what == "drain":
            self.world.store.workers.drain(worker.id)
            self.world.add_worker(offset=-3.0)
        else:
            worker.fail(NAMES[number % len(NAMES)])

    @rule(seconds=st.sampled_from((1.0, 30.0, 3600.0)))
    def database_clock_is_set_back(self, seconds: float) -> None:
        self.world.database.seconds -= seconds

    @rule(
        name=st.sampled_from(NAMES),
        what=st.sampled_from((*Desired, *["running", "deploy", "restart"] * 2)),
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
        try:
            self.world.add_worker(offset=7.0)
            self.world.settle()
            assert self.world.unsettled() == {}
        finally:
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
TestControl.settings = settings(_QUICK, max_examples=40)
TestControlWithJumps = ControlWithJumps.TestCase
TestControlWithJumps.settings = settings(_QUICK, max_examples=20)
