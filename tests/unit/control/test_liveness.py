"""A process is taken for dead only where that is certain: what it held is given to others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.control.liveness import has_ended, this_process


def of(pid: int, started: str = "1") -> str:
    """Return the name of a process of this machine."""
    machine, _, _, text = this_process().split("/")
    return f"{machine}/{pid}/{started}/{text}"


def test_this_process_lives_and_one_that_has_ended_does_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()

    assert not has_ended(this_process())
    assert has_ended(of(child.pid))
    assert has_ended(of(os.getpid(), started="1")), "a later process with the same number"


def test_nothing_is_known_of_another_machine() -> None:
    assert not has_ended("another-machine/1/1/abc")
    assert not has_ended("")


@pytest.mark.parametrize(
    "shown", [FileNotFoundError, PermissionError], ids=["hidepid=2", "hidepid=1"]
)
def test_a_process_of_another_user_that_is_hidden_lives(
    monkeypatch: pytest.MonkeyPatch, shown: type[OSError]
) -> None:
    hide(monkeypatch, shown, PermissionError)

    assert not has_ended(of(4711))


def test_a_number_that_no_process_has_is_not_a_hidden_one(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, FileNotFoundError, ProcessLookupError)

    assert has_ended(of(4711))


def hide(monkeypatch: pytest.MonkeyPatch, shown: type[OSError], killed: type[OSError]) -> None:
    """Answer for process 4711 as the system does where /proc hides processes of other users."""
    read: Callable[..., str] = Path.read_text

    def read_text(path: Path, *given: str, **more: str) -> str:
        if str(path) == "/proc/4711/stat":
            raise shown
        return read(path, *given, **more)

    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (4711, 0)
        raise killed

    this_process()
    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(os, "kill", kill)
