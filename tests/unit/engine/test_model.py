"""The promise of each delivery under random lives of processes, on the engine's own code.

Hypothesis chooses what happens: records come, processes start, die or are suspended at any effect and
wake up later, a second one takes over, state folders vanish, the group is deleted or moved by a person,
the clock jumps, the definition changes between runs. After each step nothing is doubled that may not be;
at the end a process reads what is left, and nothing is missing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.unit.engine.model import PARTITIONS, TOPIC, Process, World

from penstock.engine.resumption import STARTS_OVER
from penstock.errors import FencedError, PipelineFailedError
from penstock.pipeline.source_log import CommittedOffset

FATES = st.sampled_from(["", "", "kill", "suspend"])
MOMENTS = st.integers(0, 30)
STATES = st.sampled_from(["a", "b", "c"])


class Lives(RuleBasedStateMachine):
    """Every kind of trouble in one world; a subclass says which promise is made."""

    delivery = "exactly-once"
    commit = True
    by_partition = False
    # Whether processes have leases of the control plane: all, some, or none.
    leases = "some"

    @initialize()
    def begin(self) -> None:
        self.patches = pytest.MonkeyPatch()
        self.token = 1_700_000_000
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-model-"))
        self.world = World(
            self.folder, self.delivery, commit=self.commit, by_partition=self.by_partition
        )
        self.world.patch(self.patches)

    @rule(counts=st.lists(st.integers(0, 9), min_size=PARTITIONS, max_size=PARTITIONS))
    def records_come(self, counts: list[int]) -> None:
        for partition, count in enumerate(counts):
            self.world.ends[partition] += count

    @precondition(lambda self: self.leases != "all")
    @rule(state=STATES, fate=FATES, after=MOMENTS)
    def a_process_starts(self, state: str, fate: str, after: int) -> None:
        if any(each.state == state for each in self.world.live):
            return  # the lock of the folder refuses a second one
        process = Process(self.world, state)
        self.world.processes.append(process)
        self.world.act(process, lambda: self.world.start(process), fate, after)
        self._check(process)

    @precondition(lambda self: self.leases != "none")
    @rule(state=STATES, fate=FATES, after=MOMENTS, later=st.integers(1, 3))
    def a_process_with_a_lease_starts(self, state: str, fate: str, after: int, later: int) -> None:
        """It has a greater token than all before it, and does not wait for the lock of the folder."""
        self.token += later
        process = Process(self.world, "a" if self.leases == "all" else state, self.token)
        self.world.processes.append(process)
        self.world.act(process, lambda: self.world.start(process), fate, after)
        self._check(process)

    @precondition(lambda self: self._ready())
    @rule(which=st.integers(0, 5), most=st.integers(1, 8), fate=FATES, after=MOMENTS)
    def a_batch_runs(self, which: int, most: int, fate: str, after: int) -> None:
        process = self._ready()[which % len(self._ready())]
        self.world.act(process, lambda: self.world.batch(process, most), fate, after)
        self._check(process)

    @precondition(lambda self: any(each.is_suspended for each in self.world.live))
    @rule(which=st.integers(0, 5), fate=FATES, after=MOMENTS)
    def a_suspended_process_wakes_up(self, which: int, fate: str, after: int) -> None:
        asleep = [each for each in self.world.live if each.is_suspended]
        process = asleep[which % len(asleep)]
        self.world.process = process
        process.wake(fate, after)
        self._check(process)

    @precondition(lambda self: self._ready())
    @rule(which=st.integers(0, 5))
    def a_process_ends(self, which: int) -> None:
        self._ready()[which % len(self._ready())].is_dead = True

    @rule(seconds=st.sampled_from([-1e9, -3600.0, 0.5, 86_400.0, 1e8]))
    def the_clock_jumps(self, seconds: float) -> None:
        self.world.now = max(1.0, self.world.now + seconds)

    @rule()
    def the_definition_changes(self) -> None:
        self.world.version += 1

    @rule(state=STATES)
    def a_state_folder_vanishes(self, state: str) -> None:
        if not any(each.state == state for each in self.world.live):
            shutil.rmtree(self.folder / state, ignore_errors=True)

    @precondition(lambda self: not self.world.live)
    @rule()
    def the_group_is_deleted(self) -> None:
        if self.world.is_known_without_group():
            self.world.committed.clear()

    @precondition(lambda self: not self.world.live and self.commit)
    @rule(data=st.data())
    def a_person_moves_the_group(self, data: Any) -> None:
        """All partitions at once; what was written behind the new place is removed from the table.

        One who commits what is committed moves nothing; where the folder is lost, too, that looks like a
        wish to read again what was written and not committed, and is left out here.
        """
        world = self.world
        to = [data.draw(st.integers(0, end)) for end in world.ends]
        if {p: each.offset for (_, p), each in world.committed.items()} == dict(enumerate(to)):
            return
        for p, offset in enumerate(to):
            world.committed[TOPIC, p] = CommittedOffset(offset, "")
        world.remove_from(to)

    @precondition(lambda self: not self.world.live and self.commit)
    @rule()
    def a_person_takes_the_offsets_away(self) -> None:
        """The pipeline starts over, also where the group was at the start."""
        for p in range(len(self.world.ends)):
            self.world.committed[TOPIC, p] = CommittedOffset(0, STARTS_OVER)
        self.world.remove_from([0 for _ in self.world.ends])

    def _ready(self) -> list[Process]:
        return [each for each in self.world.live if each.loop and not each.is_suspended]

    def _check(self, process: Process) -> None:
        if process.error is not None:
            assert isinstance(process.error, (FencedError, PipelineFailedError)), process.error
        if self.delivery != "at-least-once":
            assert not self.world.duplicates()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self._settle()
        finally:
            for each in self.world.processes:
                if each.is_suspended:
                    self.world.process = each
                    each.wake("kill")
            self.patches.undo()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _settle(self) -> None:
        """End every process, let one with the newest state read what is left, and count.

        Its definition refuses nothing: a pipeline in which too much is refused waits for that.
        """
        world = self.world
        world.version += -world.version % 3
        for each in world.live:
            if each.is_suspended:
                world.process = each
                each.wake("kill")
            each.is_dead = True
        for state in ("a", "b", "c"):
            process = Process(world, state)
            world.act(process, lambda process=process: world.start(process))
            if process.error is None:
                break
            # Only a batch that was left in parts, whose plan another folder has, may refuse a start.
            assert "was being written in parts" in str(process.error)
        else:
            return  # the plan of the parts is gone, and the pipeline says so instead of guessing
        for _ in range(sum(world.ends) + 20):
            world.act(process, lambda: world.batch(process, 50))
            assert process.error is None, process.error
        self._check(process)
        if self.delivery != "at-most-once":
            assert not world.missing(), world.missing()


class ExactlyOnceByPartition(Lives):
    by_partition = True


class ExactlyOnceWithoutCommit(Lives):
    commit = False


class Leased(Lives):
    """As in the control plane: every process has a lease, and all share one state folder."""

    leases = "all"


class LeasedByPartition(Leased):
    by_partition = True


class AtMostOnce(Lives):
    delivery = "at-most-once"
    # It commits before it writes: where processes with different folders overlap, only a lock helps.
    leases = "none"


class LeasedAtMostOnce(Leased):
    delivery = "at-most-once"


class AtLeastOnce(Lives):
    delivery = "at-least-once"


# Together more than 2,000 steps, the same in each run; MODEL_EXAMPLES=1500 looks further, at random.
_FURTHER = os.environ.get("MODEL_EXAMPLES")
_SETTINGS = settings(
    max_examples=int(_FURTHER or 40),
    derandomize=_FURTHER is None,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
for _kind in (
    *(Lives, ExactlyOnceByPartition, ExactlyOnceWithoutCommit, AtMostOnce, AtLeastOnce),
    *(Leased, LeasedByPartition, LeasedAtMostOnce),
):
    _case = _kind.TestCase
    _case.settings = _SETTINGS
    globals()[f"Test{_kind.__name__}"] = _case
del _case  # pytest would run it under this name, too
