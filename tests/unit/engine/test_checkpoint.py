"""Epochs are distinguished by the second in which they begin."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.engine.checkpoint import Checkpoint
from penstock.engine.resumption import next_epoch
from penstock.pipeline.storage import Folder

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))


def test_an_epoch_is_new_to_the_sinks_even_where_the_folder_of_the_last_was_removed(
    tmp_path: Path,
) -> None:
    number = next_epoch(time.time(), [])
    first = Checkpoint(Folder(SPARK, str(tmp_path))).new(number, {("t", 0): 0}, {"t": "id"})
    first.outlast_its_second()

    assert next_epoch(time.time(), []) > first.number


def test_a_clock_that_was_set_back_is_not_waited_for(tmp_path: Path, monkeypatch: Any) -> None:
    epoch = Checkpoint(Folder(SPARK, str(tmp_path))).new(int(time.time()), {}, {})
    waited: list[float] = []
    monkeypatch.setattr(time, "time", lambda: epoch.number - 3600.0)
    monkeypatch.setattr(time, "sleep", waited.append)

    epoch.outlast_its_second()

    assert waited == [1.0]


def test_an_epoch_that_a_killed_process_was_beginning_says_nothing(tmp_path: Path) -> None:
    """Its folder has no start: the group's offsets, of the epoch before it, count."""
    checkpoint = Checkpoint(Folder(SPARK, str(tmp_path)))
    begun = checkpoint.new(7, {("t", 0): 5}, {"t": "id"})
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "penstock-topics.json").write_text("{}")
    found = checkpoint.newest()
    assert found is not None
    assert (found.number, found.start()) == (begun.number, {("t", 0): 5})
