"""The supervisor of worker processes, with a light process in the place of a worker."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from penstock.control.liveness import this_process
from penstock.control.places import SUPERVISED
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.server import supervisor as supervisors
from penstock.server.supervisor import Supervisor, worker_command
from penstock.testing import eventually

# Ends at SIGTERM after "its batch"; at the second one at once, as a worker does.
WORKER = """\
import os, pathlib, signal, subprocess, sys, time
# A process in a session of its own, as Java is.
del os.environ["PENSTOCK_SUPERVISED"]
subprocess.Popen(["sleep", "20"], start_new_session=True)
asked = []
def ask(*_):
    if asked:
        sys.exit(130)
    asked.append(1)
signal.signal(signal.SIGTERM, ask)
pathlib.Path(sys.argv[1], str(time.monotonic_ns())).touch()
while not asked or pathlib.Path(sys.argv[1], "busy").exists():
    time.sleep(0.02)
"""
Make = Callable[..., Supervisor]


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlStore]:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(supervisors, "_FIRST_WAIT", 0.05)
    with ControlStore.at(tmp_path / "control.sqlite", tmp_path / "keys") as opened:
        yield opened


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """The folder in which every worker that has started makes a file."""
    folder = tmp_path / "ready"
    folder.mkdir()
    return folder


@pytest.fixture
def make(own_store: ControlStore, ready: Path) -> Iterator[Make]:
    """Makes supervisors; their processes are ended after the test."""
    made: list[Supervisor] = []

    def build(count: int = 1, *, code: str = WORKER) -> Supervisor:
        command = [sys.executable, "-c", code, str(ready)]
        made.append(Supervisor(own_store, count, command, every=0.05))
        return made[-1]

    yield build
    for one in made:
        one.leave()
    for process in supervisors._supervised(str(own_store.database.file)):
        for each in supervisors._family(process):
            with suppress(psutil.NoSuchProcess):
                each.kill()


def started(ready: Path, count: int) -> None:
    eventually(lambda: len(list(ready.glob("[0-9]*"))) >= count)


def test_it_starts_as_many_as_wanted(make: Make, ready: Path) -> None:
    one = make(2)
    one.begin()
    started(ready, 2)

    assert len(set(one.pids())) == 2


def name_of(pid: int) -> str:
    """Return the unique name of a process of this machine that runs."""
    machine = this_process().partition("/")[0]
    start = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    return f"{machine}/{pid}/{start}/x"


def test_a_live_worker_of_another_machine_with_the_same_host_and_number_keeps_its_leases(
    make: Make, own_store: ControlStore
) -> None:
    host = supervisors.socket.gethostname()
    ended = subprocess.Popen(["sleep", "60"])
    names = {"here": name_of(ended.pid), "there": f"another-boot-1/{ended.pid}/5000/x"}
    for each, process in names.items():
        worker = f"{host}-{ended.pid}-{each}"
        own_store.deployments.put(each, Kind.PIPELINE, f"name: {each}", by="ann")
        own_store.workers.join(worker, host, ended.pid, 1.0, process)
        assert own_store.leases.claim(each, worker)
    one = make()
    one.slots[0].process = psutil.Process(ended.pid)
    ended.kill()
    eventually(lambda: not one.slots[0].is_running())  # no one has waited for it

    one._died(one.slots[0])
    ended.wait()

    now = own_store.database.time()
    assert {run.deployment: run.is_held(now) for run in own_store.leases.all()} == {
        "here": False, "there": True,
    }  # fmt: skip
    assert [row.process for row in own_store.workers.all()] == [names["there"]]


def test_one_that_is_killed_is_started_again_and_its_leases_are_free(
    make: Make, ready: Path, own_store: ControlStore
) -> None:
    one = make()
    one.begin()
    started(ready, 1)
    (pid,) = one.pids()
    worker = f"{supervisors.socket.gethostname()}-{pid}-abc"
    own_store.deployments.put("a", Kind.PIPELINE, "name: a", by="ann")
    own_store.workers.join(worker, supervisors.socket.gethostname(), pid, 1.0, name_of(pid))
    assert own_store.leases.claim("a", worker)

    os.kill(pid, signal.SIGKILL)
    started(ready, 2)

    assert one.pids() != [pid]
    assert own_store.workers.all() == []
    (run,) = own_store.leases.all()
    assert not run.is_held(own_store.database.time())


def test_one_that_dies_at_once_is_started_less_and_less_often(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(supervisors, "clock", lambda: now)
    one = make(code="raise SystemExit(3)")
    waits: list[float] = []
    for _ in range(4):
        one.step()
        eventually(lambda: not one.slots[0].is_running())
        one._died(one.slots[0])
        waits.append(one.slots[0].not_before - now)
        one.slots[0].not_before = 0.0

    ratios = [later / earlier for earlier, later in pairwise(waits)]
    assert ratios == pytest.approx([2, 2, 2])
    one.slots[0].failures = 50
    one._died(one.slots[0])
    assert one.slots[0].not_before - now == pytest.approx(supervisors._LONGEST_WAIT)


def test_the_next_server_finds_the_workers_that_the_last_one_left(make: Make, ready: Path) -> None:
    first = make(2)
    first.begin()
    started(ready, 2)
    first.leave()

    second = make(2)
    second.begin()
    second.step()

    assert sorted(second.pids()) == sorted(first.pids())
    assert len(list(ready.glob("[0-9]*"))) == 2


def test_a_worker_is_found_before_it_has_joined_and_none_of_another_store(
    make: Make, ready: Path, tmp_path: Path
) -> None:
    first = make()
    first.begin()
    started(ready, 1)
    first.leave()
    with ControlStore.at(tmp_path / "other.sqlite", tmp_path / "keys") as other:
        assert supervisors._supervised(str(other.database.file)) == []
    found = supervisors._supervised(str(first.store.database.file))

    assert [process.pid for process in found] == first.pids()
    assert found[0].environ()[SUPERVISED] == str(first.store.database.file)


def test_workers_that_are_no_longer_wanted_end(make: Make, ready: Path) -> None:
    first = make(3)
    first.begin()
    started(ready, 3)
    first.leave()

    second = make(1)
    second.begin()

    eventually(lambda: len(first.pids()) == 1)
    assert second.pids() == first.pids()


@pytest.mark.parametrize("count", [0, 1])
def test_a_second_server_does_not_end_the_workers_of_the_first(
    make: Make, ready: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    first = make(2)
    first.begin()
    started(ready, 2)
    own = first.pids()
    signals = []
    monkeypatch.setattr(psutil.Process, "send_signal", lambda *given: signals.append(given))

    second = make(count)
    second.begin()
    second.leave()

    assert signals == []
    assert sorted(first.pids()) == sorted(own)
    monkeypatch.undo()
    first.leave()
    make(0).begin()  # the only one now
    eventually(lambda: first.pids() == [])


def test_stop_waits_for_the_batch(make: Make, ready: Path) -> None:
    one = make()
    one.begin()
    started(ready, 1)

    one.stop()

    assert one.pids() == []


def test_a_worker_that_takes_too_long_is_killed(make: Make, ready: Path) -> None:
    (ready / "busy").touch()
    one = make()
    one.begin()
    started(ready, 1)

    one.stop(grace=0.1)

    eventually(lambda: one.pids() == [])


def test_stop_now_is_the_second_signal(make: Make, ready: Path) -> None:
    (ready / "busy").touch()
    one = make()
    one.begin()
    started(ready, 1)
    (process,) = [slot.process for slot in one.slots]
    assert process
    process.send_signal(signal.SIGTERM)

    one.stop_now()

    assert one.pids() == []


def test_a_store_that_is_away_does_not_end_the_supervisor(
    make: Make, ready: Path, own_store: ControlStore
) -> None:
    one = make()
    one.begin()
    started(ready, 1)
    file = own_store.database.file
    assert file
    own_store.database.close()
    away = file.with_suffix(".away")
    shutil.move(file, away)
    for each in file.parent.glob("control.sqlite-*"):
        each.unlink()
    file.mkdir()

    os.kill(one.pids()[0], signal.SIGKILL)
    started(ready, 2)
    file.rmdir()
    shutil.move(away, file)

    os.kill(one.pids()[0], signal.SIGKILL)
    started(ready, 3)


def test_the_command_of_a_worker() -> None:
    command = worker_command("--memory", "2g")

    assert command[1:] == ["-m", "penstock", "--log-format", "json", "worker", "--memory", "2g"]
