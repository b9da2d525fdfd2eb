"""The lease of a state folder: one process at a time, also where no lock of a file system reaches."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.lease import Lease, _is_dead, _process
from penstock.engine.state_dir import locked
from penstock.errors import ConfigError, FencedError, TransientError
from penstock.pipeline.storage import Folder
from penstock.testing import eventually

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))
FORKED = multiprocessing.get_context("fork")


def lease_of(place: Path, lost: list[FencedError] | None = None, stale: float = 0.5) -> Lease:
    folder = Folder(SPARK, str(place))
    on_lost = [].append if lost is None else lost.append
    return Lease(lambda: folder, "p", on_lost, renew=0.05, stale=stale)


def as_of_another_machine(place: Path) -> None:
    """Let the holder look as one of a machine whose processes cannot be seen from here."""
    (file,) = (place / "lease").glob("*.json")
    file.write_text(
        json.dumps(json.loads(file.read_text()) | {"machine": "another", "host": "far"})
    )


def test_a_second_process_is_refused_while_the_first_one_renews(tmp_path: Path) -> None:
    with (
        lease_of(tmp_path),
        pytest.raises(ConfigError, match=f"already runs in another process .process {os.getpid()}"),
    ):
        lease_of(tmp_path, stale=60).take()


def test_a_lease_that_was_given_back_is_taken_at_once(tmp_path: Path) -> None:
    for _ in range(3):
        with lease_of(tmp_path, stale=3600):
            pass
    assert Folder(SPARK, str(tmp_path)).names("lease") == []


def hold_and_die(place: Path) -> None:
    lease_of(place).take()
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_lease_of_a_process_of_this_machine_that_was_killed_is_taken_over_at_once(
    tmp_path: Path,
) -> None:
    process = FORKED.Process(target=hold_and_die, args=(tmp_path,))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL

    with lease_of(tmp_path, stale=3600):
        assert len(Folder(SPARK, str(tmp_path)).names("lease")) == 1


def test_a_holder_on_another_machine_that_stopped_renewing_is_replaced_and_stops_with_an_error(
    tmp_path: Path,
) -> None:
    suspended = lease_of(tmp_path)
    suspended.take()
    as_of_another_machine(tmp_path)

    with lease_of(tmp_path, stale=0.2):
        with pytest.raises(FencedError, match="took over its state"):
            suspended.renew()
        suspended.release()  # it must not take the lease away from the new holder
        assert len(Folder(SPARK, str(tmp_path)).names("lease")) == 1


def test_a_holder_that_lost_its_lease_hears_of_it(tmp_path: Path) -> None:
    lost: list[FencedError] = []
    with lease_of(tmp_path, lost):
        Folder(SPARK, str(tmp_path)).create(f"lease/{7:020}.json", '{"owner": "x", "pid": 1}')
        eventually(lambda: lost, timeout=30)


def test_a_holder_that_wakes_up_after_others_came_and_went_is_not_the_holder(
    tmp_path: Path,
) -> None:
    zombie = lease_of(tmp_path)
    zombie.take()
    Folder(SPARK, str(tmp_path)).remove("lease")
    with lease_of(tmp_path), pytest.raises(FencedError):  # with the same number as the zombie's
        zombie.renew()


def take_and_report(place: Path, results: Any) -> None:
    try:
        lease_of(place, stale=0.2).take()
        results.put("taken")
        signal.pause()
    except ConfigError:
        results.put("refused")


def test_of_several_that_take_over_at_the_same_time_one_has_the_lease(tmp_path: Path) -> None:
    lease_of(tmp_path).take()
    as_of_another_machine(tmp_path)
    results: Any = FORKED.Queue()
    processes = [FORKED.Process(target=take_and_report, args=(tmp_path, results)) for _ in range(4)]
    for process in processes:
        process.start()
    try:
        assert results.get(timeout=30) == "taken"
        (held,) = [json.loads(f.read_text()) for f in (tmp_path / "lease").glob("*.json")]
        assert held["pid"] in [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.join(10)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_state_folder_on_this_disk_is_locked_also_by_its_uri(tmp_path: Path, scheme: str) -> None:
    with (
        locked(f"{scheme}{tmp_path}", "p"),
        pytest.raises(ConfigError, match="already runs in another process"),
    ):
        locked(f"file://{tmp_path}", "p")


def test_a_full_disk_is_a_reason_to_wait_for_the_lock(full_disk: Path) -> None:
    with pytest.raises(TransientError, match="no space left"):
        locked(str(full_disk / "state"), "p")


@pytest.mark.parametrize(
    ("answer", "is_dead"), [(PermissionError, False), (ProcessLookupError, True)]
)
def test_a_process_of_another_user_that_is_hidden_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch, answer: type[OSError], is_dead: bool
) -> None:
    """With the mount option hidepid, /proc has no entry of it."""
    held = _process(os.getpid()) | {"pid": 4711, "started": "1"}
    read = Path.read_text

    def read_text(path: Path, *given: Any, **more: Any) -> str:
        if str(path) == "/proc/4711/stat":
            raise FileNotFoundError
        return read(path, *given, **more)

    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (4711, 0)
        raise answer

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(os, "kill", kill)

    assert _is_dead(held) is is_dead
