"""Random events in the lives of all exactly-once pipelines at once, then a count of every record.

`WorldOfTrouble` performs them one after the other while records flow; each is one event for every
pipeline that runs. What happened is kept in `history`, with the seed, so that a run can be repeated.
"""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import cycle

from tests.faults.suite.host import PATIENCE, ROOT, Host, environment
from tests.faults.suite.load import Load
from tests.faults.suite.targets import COMMON, TARGETS
from tests.faults.suite.verdict import EVENTS
from tests.faults.suite.world import DEFINITIONS, Run, World, value

from penstock import Admin
from penstock.kafka import GroupOffsets

# A new state folder cannot continue a batch that was written in parts: the pipeline says so and waits.
_IN_PARTS = "was being written in parts"
_YEAR = 365 * 86400.0
CLOCKS = (-10 * _YEAR, -3600.0, _YEAR)
# Tokens of leases begin at a second of now.
_FIRST_TOKEN = 1_800_000_000
# How long a process may take to reach the point at which it is aimed; then it is killed where it is.
_TO_THE_POINT = 45.0
# The time of passing the point, at most, that ends the process.
_TIMES = 4


class WorldOfTrouble:
    """Performs events; counts them for each sink."""

    def __init__(
        self, world: World, seed: int, report: Callable[[str], None] = lambda _: None
    ) -> None:
        self.world, self.seed = world, seed
        self.dice = random.Random(seed)
        self.tally: dict[str, Counter[str]] = {sink: Counter() for sink in world.sinks}
        self.letters: dict[str, dict[str, list[int]]] = {
            sink: defaultdict(list) for sink in world.sinks
        }
        self.history: list[str] = []
        self._log_event = report
        self._began = time.monotonic()
        self._definition = "plain"
        self._numbers = iter(range(1, 1_000_000))
        self._aims = cycle(world.sinks)
        self._states = dict.fromkeys(world.sinks, "state-0")
        self._hosts: list[Host] = []
        self.host: Host | None = None

    # -- the events

    def kill(self) -> None:
        """Kill everything at a random moment."""
        self._killed(share=self.dice.random())

    def aimed_kill(self) -> None:
        """Kill where it hurts: between the rows, the mark, the dead letters and the commit.

        The points of the sinks take turns: each one dies in its own code.
        """
        self._ended_somehow()
        points = [*TARGETS[next(self._aims)].points, *COMMON]
        place, when, _ = self.dice.choice(points).split("|")
        point = f"{place}|{when}|{self.dice.randint(1, _TIMES)}"
        host = self._start(point=point)
        host.until(lambda: False, timeout=_TO_THE_POINT)
        self._note(f"killed at {point}" if not host.alive else f"{point} not reached")
        self._count("kills", host.live)
        host.kill()
        assert host.process.returncode == -signal.SIGKILL, host.last_output()
        self._check(host)
        self.host = None

    def zombie(self) -> None:
        """Suspend everything, let another process take over, and wake up the first one."""
        self._suspended(lambda: self._start(states=self._other_states()))

    def taken_over(self) -> None:
        """Suspend everything; one with a later lease goes on with the same state; wake the first."""
        self._suspended(lambda: self._start(token=self._next_token()))

    def leased_kill(self) -> None:
        """Kill everything; a process with a later lease goes on with the same state."""
        self._killed(self.dice.random(), token=self._next_token())

    def _next_token(self) -> int:
        return _FIRST_TOKEN + next(self._numbers)

    def _suspended(self, start_other: Callable[[], Host]) -> None:
        old = self._running(share=self.dice.random())
        time.sleep(self.dice.uniform(0, 2))  # the moment is the point, not a wait
        old.signal_all(signal.SIGSTOP)
        concerned = old.live
        fresh = start_other()
        # A transaction of the suspended process may hold a lock in the database: the others go on.
        wanted = max(1, len(concerned) - 2)
        fresh.until(lambda: len(fresh.with_batches()) + len(fresh.failed) >= wanted, timeout=90)
        old.signal_all(signal.SIGCONT)
        self._count("suspended", concerned)
        self._one_of_two(old, fresh, concerned)

    def twins(self) -> None:
        """Start two processes with separate state folders at the same moment."""
        self._ended_somehow()
        both_new = self.dice.random() < 0.5
        first = self._start(states=self._other_states() if both_new else None)
        second = self._start(states=self._other_states())
        self._count("twins", self.world.sinks)
        self._one_of_two(first, second, list(self.world.sinks))

    def state_lost(self) -> None:
        """Remove all state folders while nothing runs."""
        self._ended_somehow()
        number = next(self._numbers)
        for state in set(self._states.values()):
            folder = self.world.states / state
            if folder.exists():
                folder.rename(self.world.states / f"{state}-lost-{number}")
        self._count("state lost", self.world.sinks)
        self._start(clock=self.dice.choice([0.0, *CLOCKS]))

    def clock(self) -> None:
        """Start with a clock that is years off, and another state folder, so that it is asked."""
        self._ended_somehow()
        clock = self.dice.choice(CLOCKS)
        self._note(f"clock {clock:+.0f} s")
        self._count("clock", self.world.sinks)
        self._start(states=self._other_states(), clock=clock)

    def group_deleted(self) -> None:
        """Delete the consumer groups while nothing runs."""
        self._running(share=1.0)
        self._ended_somehow()
        with Admin(self.world.setting.connection) as admin:
            for sink in self.world.sinks:
                admin.delete_group(self.world.of(sink).name)
        self._count("groups", self.world.sinks)
        self._start()
        self._running(share=1.0)

    def group_reset(self) -> None:
        """Set the groups to the offsets they have, as a person does with Kafka's tool."""
        self._running(share=1.0)
        self._end_in_order()
        for sink in self.world.sinks:
            own = self.world.of(sink)
            with GroupOffsets(own.connection, own.name) as group:
                group.commit(group.committed())
        self._count("groups", self.world.sinks)
        self._start()

    def letters_handled(self) -> None:
        """Replay some dead letters and drop others, in another process, while everything runs."""
        host = self._running(share=1.0)
        run = Run({sink: self._states[sink] for sink in host.live}, self._definition)
        command = [sys.executable, "-m", "tests.faults.suite.world_letters"]
        done = subprocess.run(
            [*command, self.world.written(), run.written()],
            env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=3 * PATIENCE,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        self._count("replays", run.states)
        for line in done.stdout.splitlines():
            found = json.loads(line)
            sink = found.pop("sink")
            for what, numbers in found.items():
                self.letters[sink][what] += numbers
                self.tally[sink]["letters handled"] += len(numbers)
        self._check(host)

    def definition_changed(self) -> None:
        """Start with another definition: the same rows in another way, or some that are refused."""
        self._ended_somehow()
        self._definition = self.dice.choice([d for d in DEFINITIONS if d != self._definition])
        self._note(f"definition {self._definition}")
        self._count("definitions", self.world.sinks)
        self._start()

    # -- the whole

    def perform(self, event: str, load: Load) -> None:
        so_far = sum(count[what] for count in self.tally.values() for what in EVENTS)
        self._note(f"{event} at {load.sent:,} records, after {so_far} kills and events")
        getattr(self, event)()

    def finish(self) -> None:
        """Let one process read what is left, undisturbed."""
        self._ended_somehow()
        host = self._start(once=True)
        ended = host.until(lambda: not host.live, timeout=2 * PATIENCE)
        assert ended, f"{host.live} do not end: {host.last_output()}"
        if not host.failed:
            assert host.wait() == 0, host.last_output()
        else:  # it goes on with the state folder that it had
            self._check(host)
            host.wait()
            self._states = {sink: self._states[sink] for sink in host.failed}
            for sink, state in self._states.items():
                assert state != host.run.states[sink], f"{sink} cannot go on: {host.failed[sink]}"
            self.finish()

    def close(self) -> None:
        for host in self._hosts:
            if host.alive:
                host.kill()

    def story(self) -> str:
        return f"seed {self.seed}\n" + "\n".join(self.history)

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self._began

    # -- the means

    def _note(self, what: str) -> None:
        line = f"{self.seconds:6.0f} s  {what}"
        self.history.append(line)
        self._log_event(line)

    def _count(self, what: str, sinks: object) -> None:
        for sink in sinks:  # type: ignore[attr-defined]
            self.tally[sink][what] += 1

    def _start(
        self,
        *,
        states: dict[str, str] | None = None,
        point: str = "",
        clock: float = 0.0,
        once: bool = False,
        token: int | None = None,
    ) -> Host:
        run = Run(dict(states or self._states), self._definition, once, token)
        log = self.world.setting.folder / f"host-{next(self._numbers)}.log"
        self.host = Host(self.world, run, log, point=point, clock=clock)
        self._hosts.append(self.host)
        return self.host

    def _other_states(self) -> dict[str, str]:
        """Give every pipeline a state folder that is new."""
        self._states = dict.fromkeys(self.world.sinks, f"state-{next(self._numbers)}")
        return self._states

    def _running(self, share: float) -> Host:
        """Wait until that share of the pipelines that run has done a batch since the start."""
        host = self.host or self._start()
        is_there = host.until(lambda: len(host.with_batches()) >= share * len(host.live))
        self._check(host)
        assert host.alive or not host.live, f"it ended by itself: {host.last_output()}"
        missing = [sink for sink in host.live if sink not in host.with_batches()]
        assert is_there, f"no batch within {PATIENCE:.0f} s: {missing}\n{host.last_output()}"
        return host

    def _check(self, host: Host) -> None:
        """Take back the state folder where a batch was half written; no other failure is expected."""
        for sink, (kind, text) in host.failed.items():
            if _IN_PARTS in text:
                self._take_back(sink)
            else:
                assert sink in host.judged, f"{sink} failed with {kind}: {text}"

    def _take_back(self, sink: str) -> None:
        """Give a pipeline the newest state folder with a plan of parts, as its error asks for."""
        plans = self.world.states.glob(f"*/{self.world.of(sink).name}/*/parts/*")
        newest = max(plans, key=lambda plan: plan.stat().st_mtime)
        state = newest.relative_to(self.world.states).parts[0]
        if self._states[sink] != state:
            self._note(f"{sink} needs the state folder that it had")
            self._states[sink] = state
            self.tally[sink]["refused to go on"] += 1

    def _killed(self, share: float, token: int | None = None) -> None:
        host = self._running(share)
        time.sleep(self.dice.uniform(0, 1.5))  # the moment of the kill is the point, not a wait
        self._count("kills", host.live)
        host.kill()
        self._check(host)
        self._start(token=token)

    def _ended_somehow(self) -> None:
        """End what runs: by a kill, or in order."""
        host = self.host
        if host is None or not host.alive:
            if host is not None:
                self._check(host)
            return
        if self.dice.random() < 0.5:
            self._end_in_order()
            return
        self._running(share=self.dice.random())
        self._count("kills", host.live)
        host.kill()
        self._check(host)

    def _end_in_order(self) -> None:
        host = self._running(share=self.dice.random())
        if host.alive:
            host.stop()
        self._check(host)

    def _one_of_two(self, first: Host, second: Host, concerned: list[str]) -> None:
        """Wait until one of two processes has given up each pipeline, and the other goes on."""
        for host in (first, second):
            host.until(lambda: all(_given_up(s, first, second) for s in concerned), timeout=120)
            assert host.alive or not host.live, host.last_output()
        for sink in concerned:
            self._judge(sink, first, second)
        self._count("fenced", [s for s in concerned if _is_fenced(s, first, second)])
        if first.alive:
            first.stop()
        first.wait()
        self.host = second

    def _judge(self, sink: str, first: Host, second: Host) -> None:
        gave_up = [host for host in (first, second) if sink in host.failed]
        story = f"{first.last_output()}\n{second.last_output()}"
        assert gave_up, f"both processes run {sink}: {story}"
        for host in gave_up:
            host.judged.add(sink)
            kind, text = host.failed[sink]
            assert kind == "FencedError" or _IN_PARTS in text, f"{sink}: {kind} {text}"
        if first not in gave_up:
            self._states[sink] = first.run.states[sink]
        elif second not in gave_up:
            self._states[sink] = second.run.states[sink]
        else:
            kinds = [host.failed[sink][0] for host in gave_up]
            assert kinds != ["FencedError"] * 2, f"neither process runs {sink}: {story}"
            self._take_back(sink)


def _given_up(sink: str, first: Host, second: Host) -> bool:
    return sink in first.failed or sink in second.failed


def _is_fenced(sink: str, *hosts: Host) -> bool:
    return any(host.failed.get(sink, ("",))[0] == "FencedError" for host in hosts)


# Each at least once, in any order; those that find most come more often.
DECK = (
    "kill", "aimed_kill", "zombie", "twins", "state_lost", "clock", "group_deleted", "group_reset",
    "letters_handled", "definition_changed", "aimed_kill", "zombie", "state_lost", "letters_handled",
    "definition_changed", "kill", "taken_over", "leased_kill", "taken_over", "leased_kill",
)  # fmt: skip


def chosen_events(seed: int, count: int) -> list[str]:
    """Return that many events in a random order, as even as can be."""
    dice = random.Random(f"events {seed}")
    found: list[str] = []
    while len(found) < count:
        found += dice.sample(DECK, len(DECK))
    return found[:count]


def run(
    world: World,
    seed: int,
    events: list[str],
    report: Callable[[str], None] = lambda _: None,
    *,
    burst: int = 2,
    seconds: float = math.inf,
    least: int = 0,
) -> tuple[WorldOfTrouble, int]:
    """Perform the events while records flow, let the pipelines finish; return also how many were sent.

    After that many seconds no other event is begun, but for the least number of events.
    """
    for sink in world.sinks:
        world.of(sink).folder.mkdir(parents=True, exist_ok=True)
    trouble = WorldOfTrouble(world, seed, report)
    try:
        with Load(world.setting.connection, world.setting.name, burst=burst, values=value) as load:
            for number, event in enumerate(events):
                if number < least or trouble.seconds < seconds:
                    trouble.perform(event, load)
        trouble.finish()
    except BaseException as error:
        error.args = (f"{error}\n{trouble.story()}",) if error.args else (trouble.story(),)
        raise
    finally:
        trouble.close()
    return trouble, load.sent
