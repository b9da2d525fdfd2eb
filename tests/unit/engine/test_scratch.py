"""Spark's temporary files: private, one folder for each process, removed with it."""

import fcntl
import stat
import tempfile

import pytest

from penstock.engine.scratch import Scratch
from penstock.engine.state_dir import locked


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_and_the_one_above_are_for_their_owner_alone_and_go_at_the_end():
    scratch = Scratch()
    assert [_mode(scratch.path), _mode(scratch.path.parent)] == [0o700, 0o700]
    scratch.remove()
    assert not scratch.path.exists()


def test_what_a_killed_process_left_is_removed_and_what_runs_is_not():
    running = Scratch()
    left = running.path.parent / "spark-left"
    left.mkdir()
    (left / "lock").touch()
    Scratch().remove()
    assert running.path.exists()
    assert not left.exists()
    running.remove()


def test_a_folder_that_another_user_could_write_is_not_used():
    first = Scratch()
    first.path.parent.chmod(0o777)
    second = Scratch()
    assert second.path.parent != first.path.parent
    assert _mode(second.path.parent) == 0o700
    with pytest.raises(BlockingIOError), (first.path / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    first.remove()
    second.remove()


def test_a_new_state_folder_is_for_its_owner_alone(tmp_path):
    with locked(str(tmp_path / "state" / "p"), "p"):
        assert _mode(tmp_path / "state" / "p") == 0o700
