"""Three workers of one store, and what happens to such processes; then a count of every record."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median

import httpx
import psutil
import yaml
from tests.faults.suite.host import ROOT, family_of
from tests.faults.suite.timeline import Timeline
from tests.faults.suite.verdict import behind
from tests.faults.suite.world import World
from tests.services.postgres import Postgres

from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired, Kind
from penstock.embedded.ports import free_ports
from penstock.errors import TransientError
from penstock.testing import eventually

LEASE = 5.0
PATIENCE = 600.0
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
EVENTS = (
    "kill", "kill", "kill_java", "kill_server", "suspend", "store_restart", "drain", "pause", "change",
)  # fmt: skip


class HostProcess:
    """One `penstock worker` or `penstock serve`, in a process group of its own."""

    def __init__(self, store: str, keys: Path, log: Path, *arguments: str) -> None:
        self.log = log
        command = [sys.executable, "-m", "penstock", "-v", "--log-format", "json"]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, *arguments],
                stdout=output, stderr=output, cwd=ROOT, start_new_session=True,
                env=os.environ
                | {"PENSTOCK_STORE": store, "PENSTOCK_STORE_KEYS": str(keys)}
                | {"JAVA_TOOL_OPTIONS": _SHORT_LIVED},
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals, only_java: bool = False) -> None:
        for process in family_of(self.pid):
            with suppress(psutil.NoSuchProcess):
                if not only_java or process.name() == "java":
                    process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait(60)


class WorkerProcess(HostProcess):
    """A worker."""

    def __init__(self, store: str, keys: Path, log: Path, lease: float = LEASE) -> None:
        super().__init__(store, keys, log, "worker", "--lease", str(lease), "--memory", "1g")


class ServerProcess(HostProcess):
    """The API of a store, without workers."""

    def __init__(self, store: str, keys: Path, log: Path) -> None:
        (self._port,) = free_ports(1)
        super().__init__(store, keys, log, "serve", "--workers", "0", "--port", str(self._port))

    def send_restart(self, deployment: str) -> None:
        """Wait until it answers, and let it restart a deployment."""
        url = f"http://127.0.0.1:{self._port}"
        eventually(lambda: self._answers(f"{url}/health"), timeout=PATIENCE)
        httpx.post(f"{url}/api/v1/deployments/{deployment}/restart", timeout=60).raise_for_status()

    @staticmethod
    def _answers(url: str) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(url, timeout=10).is_success
        return False


class Workers:
    """The workers and the server of a store with a deployment for each sink of a world."""

    def __init__(
        self,
        world: World,
        store: ControlStore,
        place: tuple[str, Path],
        *,
        seed: int,
        postgres: Postgres | None = None,
        count: int = 3,
        every: float = 0.0,
        report: Callable[[str], None] = print,
    ) -> None:
        self.world, self.store, self._place = world, store, place
        self._postgres = postgres
        self._every = every
        self.dice = random.Random(seed)
        self._report = report
        self._began = time.monotonic()
        self._timeline = Timeline(world.setting.folder)
        self._numbers = iter(range(1_000_000))
        self.tally: dict[str, Counter[str]] = defaultdict(Counter)
        # Seconds after each event until all ran again, by its kind.
        self.takeovers: list[tuple[float, str]] = []
        self.processes = [self._started() for _ in range(count)]
        self._server = self._started_server()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for each in [*self.processes, self._server]:
            if each.alive:
                each.send(signal.SIGCONT)
                each.kill()

    def _started(self) -> WorkerProcess:
        log = self.world.setting.folder / f"worker-{next(self._numbers)}.log"
        return WorkerProcess(*self._place, log)

    def _started_server(self) -> ServerProcess:
        return ServerProcess(*self._place, self.world.setting.folder / "server.log")

    # -- deployments

    def deploy(self, definition: str = "plain") -> None:
        for sink in self.world.sinks:
            own = self.world.of(sink)
            own.folder.mkdir(parents=True, exist_ok=True)
            given = self.world.definition(sink, "states", definition)
            brokers = {"bootstrap.servers": self.world.setting.connection.brokers}
            text = yaml.safe_dump({"connection": brokers, "every": self._every, **given})
            self._asked(own.name, text)

    def _asked(self, name: str, text: str) -> None:
        before = self.store.deployments.get(name)
        sealed = self.store.secrets.sealed(name, text, before.spec if before else None)
        self.store.deployments.put(name, Kind.PIPELINE, sealed, by="a test")

    @property
    def names(self) -> list[str]:
        return [self.world.of(sink).name for sink in self.world.sinks]

    def needs_java(self, name: str) -> bool:
        """Return whether a deployment always has something in Java, and so notices its death."""
        return True

    def all_running(self) -> bool:
        """Return whether every deployment runs, by a worker that is alive, in its last generation."""
        try:
            view = self.store.view()
        except TransientError:
            return False
        pids = {worker.id: worker.pid for worker in view.workers.values()}
        alive = {each.pid for each in self.processes if each.alive}
        runs = [view.runs[name] for name in self.names]
        return all(
            run.state == "RUNNING"
            and run.is_held(view.now)
            and pids.get(run.worker) in alive
            and run.generation == view.wanted[run.deployment].generation
            for run in runs
        )

    def until_running(self, is_noticed: Callable[[], bool] = lambda: True) -> float:
        """Wait until everything runs, and the event is noticed; return for how many seconds that took."""
        began = time.monotonic()
        eventually(lambda: is_noticed() and self.all_running(), timeout=PATIENCE, every=0.1)
        return time.monotonic() - began

    # -- events

    def perform(self, event: str) -> None:
        for sink in self.world.sinks:
            self.tally[sink]["kills"] += 1
        began = time.monotonic()
        is_noticed = getattr(self, f"_{event}")() or (lambda: True)
        lasted, origin = time.monotonic() - began, time.time()
        taken = self.until_running(is_noticed)
        self.takeovers.append((taken, event))
        self._note(f"{event} ({lasted:.1f} s): all running after {taken:.1f} s; the last one was "
                   f"{self._timeline.slowest(origin, lasted)}")  # fmt: skip

    def summary(self) -> str:
        """Return after how many seconds all ran again: of all events, and of each kind."""
        kinds = dict.fromkeys(event for _, event in sorted(self.takeovers, reverse=True))
        lines = [("all", [seconds for seconds, _ in self.takeovers])]
        lines += [(kind, [s for s, event in self.takeovers if event == kind]) for kind in kinds]
        return "\n".join(
            f"{kind}: {len(times)} events, back after {median(times):.1f} s (median), {max(times):.1f} s "
            f"(longest); above 30 s: {sum(each > 30 for each in times)}"
            for kind, times in lines
        )

    def _chosen(self) -> int:
        return self.dice.randrange(len(self.processes))

    def _kill(self) -> None:
        number = self._chosen()
        self.processes[number].kill()
        self.processes[number] = self._started()

    def _kill_java(self) -> Callable[[], bool]:
        """Kill the Java of a worker; return whether each of its runs was moved or restarted since."""
        worker = self.processes[self._chosen()]
        held = {name: self.store.leases.get(name) for name in self._held_by(worker.pid)}
        before = {
            name: run
            for name, run in held.items()
            if run and run.state == "RUNNING" and self.needs_java(name)
        }
        worker.send(signal.SIGKILL, only_java=True)

        def is_noticed() -> bool:
            now = {run.deployment: run for run in self.store.leases.all(before)}
            return all(
                (now[name].token, now[name].restarts) != (was.token, was.restarts)
                for name, was in before.items()
            )

        return is_noticed

    def _kill_server(self) -> None:
        """Kill the server; the next one takes a request, and the workers have gone on meanwhile."""
        self._server.kill()
        self._server = self._started_server()
        self._server.send_restart(self.dice.choice(self.names))

    def _suspend(self) -> None:
        """Suspend a worker past its lease; wake it when another one has its deployments."""
        worker = self.processes[self._chosen()]
        worker.send(signal.SIGSTOP)
        held = self._held_by(worker.pid)
        try:
            eventually(lambda: not held & self._held_by(worker.pid), timeout=PATIENCE)
        finally:
            worker.send(signal.SIGCONT)

    def _held_by(self, pid: int) -> set[str]:
        view = self.store.view()
        return {
            name for name, run in view.runs.items() if run.worker.split("-")[-2:-1] == [str(pid)]
        }

    def _store_restart(self) -> None:
        if self._postgres is not None:
            self._postgres.kill()
            time.sleep(self.dice.uniform(0, 2 * LEASE))  # shorter and longer than a lease
            self._postgres.start()

    def _drain(self) -> None:
        number = self._chosen()
        worker = self.processes[number]
        worker.process.send_signal(signal.SIGTERM)
        self.processes[number] = self._started()
        assert worker.process.wait(PATIENCE) in (0, 130), worker.log.read_text()[-2000:]

    def _pause(self) -> None:
        name = self.dice.choice(self.names)
        self.store.deployments.set_desired(name, Desired.PAUSED, by="a test")
        eventually(lambda: self.store.leases.get(name).state == "PAUSED", timeout=PATIENCE)
        self.store.deployments.set_desired(name, Desired.RUNNING, by="a test")

    def _change(self) -> None:
        self.deploy(self.dice.choice(["plain", "rewritten"]))

    def _note(self, what: str) -> None:
        self._report(f"{time.monotonic() - self._began:6.0f} s  {what}")
        sys.stdout.flush()

    def caught_up(self) -> bool:
        """Return whether the groups of all deployments are at the end of the topic."""
        return all(behind(self.world, sink) == 0 for sink in self.world.sinks)

    def stop(self) -> None:
        """End all workers in order."""
        for each in self.processes:
            each.process.send_signal(signal.SIGTERM)
        for each in self.processes:
            assert each.process.wait(PATIENCE) in (0, 130), each.log.read_text()[-2000:]
