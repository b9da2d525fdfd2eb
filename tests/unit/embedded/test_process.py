"""A child ends with its parent, tells why it died, and stops when asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from penstock.embedded import guard
from penstock.embedded.process import Child, log_file, tail
from penstock.errors import SetupError

SLEEP = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
    "while True: time.sleep(600)",
]
PARENT = """
import sys, threading, time
from pathlib import Path
from penstock.embedded.process import Child
made = []
def start():
    made.append(Child({command!r}, log=Path({log!r}), remove={remove!r} and Path({remove!r}),
                      detached={detached!r}))
thread = threading.Thread(target=start)
thread.start()
thread.join()
print(made[0].pid, made[0].guard_pid, flush=True)
time.sleep(600)
"""


def eventually(condition: Callable[[], bool], within: float = 20.0) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def says_up(child: Child) -> bool:
    return "up" in tail(child.log, 5)


def start_parent(
    tmp_path: Path, remove: str = "", *, detached: bool = False
) -> tuple[int, int, int]:
    script = PARENT.format(
        command=SLEEP, log=str(tmp_path / "c.log"), remove=remove, detached=detached
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as output:
        child, its_guard = map(int, output.readline().split())
    return parent.pid, child, its_guard


def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent, child, its_guard = start_parent(tmp_path)
    assert not gone(child)
    os.kill(parent, signal.SIGKILL)
    assert eventually(lambda: gone(child) and gone(its_guard))


def test_a_killed_parents_temporary_folder_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    parent, child, _ = start_parent(tmp_path, str(folder))
    os.kill(parent, signal.SIGKILL)
    assert eventually(lambda: gone(child) and not folder.exists())


def test_a_child_does_not_outlive_a_guard_that_is_killed(tmp_path: Path) -> None:
    with Child(SLEEP, log=tmp_path / "c.log") as child:
        os.kill(child.guard_pid, signal.SIGKILL)
        assert eventually(lambda: gone(child.pid))


def test_a_detached_child_stays_until_its_guard_is_asked_to_end_it(tmp_path: Path) -> None:
    parent, child, its_guard = start_parent(tmp_path, detached=True)
    os.kill(parent, signal.SIGKILL)
    assert eventually(lambda: gone(parent))
    assert not gone(child)
    os.kill(its_guard, signal.SIGTERM)
    assert eventually(lambda: gone(child) and gone(its_guard))


def test_stop_ends_a_child_that_ignores_sigterm(tmp_path: Path) -> None:
    child = Child(STUBBORN, log=tmp_path / "c.log", grace=0.2)
    child.wait_until(lambda: says_up(child), timeout=20, what="the child")
    child.stop()
    assert child.wait() == 128 + signal.SIGKILL
    assert gone(child.pid)


def test_a_child_that_dies_early_is_reported_with_its_last_lines_and_its_log(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", "print('out of luck'); raise SystemExit(7)"]
    child = Child(command, log=tmp_path / "c.log")
    with pytest.raises(SetupError) as caught:
        child.wait_until(lambda: False, timeout=20, what="The thing")
    assert "The thing ended with exit code 7" in str(caught.value)
    assert "out of luck" in str(caught.value)
    assert str(tmp_path / "c.log") in str(caught.value)


def test_a_child_that_is_not_ready_in_time_is_reported(tmp_path: Path) -> None:
    with (
        Child(SLEEP, log=tmp_path / "c.log") as child,
        pytest.raises(SetupError, match=r"The thing was not ready after 0\.1 s"),
    ):
        child.wait_until(lambda: False, timeout=0.1, what="The thing")


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="/no/such/program could not be started"):
        Child(["/no/such/program"], log=tmp_path / "c.log")


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"nowhere/c\.log"):
        Child(SLEEP, log=tmp_path / "nowhere" / "c.log")


def test_a_new_run_keeps_the_log_of_the_last_one(tmp_path: Path) -> None:
    for word in ("one", "two"):
        Child([sys.executable, "-c", f"print('{word}')"], log=tmp_path / "c.log").wait(20)
    assert tail(tmp_path / "c.log", 5) == ["two"]
    assert tail(tmp_path / "c.log.1", 5) == ["one"]


def test_a_large_log_begins_anew_and_three_old_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "ROTATE_BYTES", 3)
    log = guard.Log(tmp_path / "c.log")
    for word in (b"aaaa", b"bbbb", b"cccc", b"dddd", b"e"):
        log.write(word)
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert found == {"c.log": b"e", "c.log.1": b"dddd", "c.log.2": b"cccc", "c.log.3": b"bbbb"}


def test_a_file_that_the_child_writes_at_its_end_gets_its_name(tmp_path: Path) -> None:
    draft, final = tmp_path / "draft", tmp_path / "final"
    command = [sys.executable, "-c", f"open({str(draft)!r}, 'w').write('whole')"]
    Child(command, log=tmp_path / "c.log", keep=(draft, final)).wait(20)
    assert final.read_text() == "whole"
    assert not draft.exists()


def test_old_logs_of_a_family_do_not_pile_up(home: Path) -> None:
    (home / "log").mkdir(parents=True)
    for number in range(70):
        path = home / "log" / f"broker-{number}.log"
        path.touch()
        os.utime(path, (number, number))
    assert log_file("broker-99") == home / "log" / "broker-99.log"
    left = sorted(int(path.stem.partition("-")[2]) for path in (home / "log").iterdir())
    assert left == list(range(10, 70))
