"""Epochs are told apart by the second in which they begin."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.engine.checkpoint import Checkpoint
from penstock.pipeline.storage import Folder

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))


def test_an_epoch_is_new_to_the_sinks_even_where_the_folder_of_the_last_was_removed(
    tmp_path: Path,
) -> None:
    first = Checkpoint(Folder(SPARK, str(tmp_path / "first"))).new({("t", 0): 0}, {"t": "id"})
    first.outlast_its_second()
    second = Checkpoint(Folder(SPARK, str(tmp_path / "second"))).new({("t", 0): 0}, {"t": "id"})

    assert second.number > first.number


def test_epochs_of_one_folder_that_begin_in_one_second_have_names_of_their_own(
    tmp_path: Path,
) -> None:
    checkpoint = Checkpoint(Folder(SPARK, str(tmp_path)))
    numbers = [checkpoint.new({}, {}).number for _ in range(3)]

    assert len(set(numbers)) == 3
    assert numbers == sorted(numbers)


def test_a_clock_that_was_set_back_is_not_waited_for(tmp_path: Path, monkeypatch: Any) -> None:
    epoch = Checkpoint(Folder(SPARK, str(tmp_path))).new({}, {})
    waited: list[float] = []
    monkeypatch.setattr(time, "time", lambda: epoch.number - 3600.0)
    monkeypatch.setattr(time, "sleep", waited.append)

    epoch.outlast_its_second()

    assert waited == [1.0]
