"""The state of a pipeline: where it is, and that one process uses it at a time."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.state_dir import is_state, locked, state_place
from penstock.errors import ConfigError, SetupError, TransientError


def test_the_state_of_a_pipeline_is_below_the_folder_that_is_given(tmp_path: Path) -> None:
    assert state_place("p", str(tmp_path)) == f"{tmp_path}/p"
    assert state_place("p", "s3a://bucket/states") == "s3a://bucket/states/p"


def test_a_second_process_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    place = str(tmp_path / "p")
    with (
        locked(place, "p"),
        pytest.raises(ConfigError, match="'p' already runs in another process"),
    ):
        locked(place, "p")
    locked(place, "p").close()


def test_a_new_state_folder_is_private(tmp_path: Path) -> None:
    with locked(str(tmp_path / "states" / "p"), "p"):
        assert stat.S_IMODE((tmp_path / "states" / "p").stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in its place")
    with pytest.raises(SetupError, match=r"cannot write the state of pipeline 'p' under .*file/p"):
        locked(str(tmp_path / "file" / "p"), "p")


def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(TransientError, match="no space left"):
        locked(str(tmp_path / "p"), "p")


def test_a_folder_with_a_lock_and_epochs_is_a_state(tmp_path: Path) -> None:
    assert not is_state(tmp_path / "missing")
    (tmp_path / "lock").touch()
    assert is_state(tmp_path)
    (tmp_path / "notes.txt").touch()
    assert not is_state(tmp_path)
    (tmp_path / "1794901381").mkdir()
    assert is_state(tmp_path)
