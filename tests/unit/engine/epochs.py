"""Epochs on disk as Spark leaves them, without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.engine.checkpoint import Checkpoint, Epoch
from penstock.pipeline import Offsets
from penstock.pipeline.storage import Folder
from penstock.pipeline.values import offsets_as_json

_SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))


def begin(folder: Path) -> Checkpoint:
    """Return the checkpoint of a pipeline that has not run."""
    return Checkpoint(Folder(_SPARK, str(folder / "state")))


def plan_batch(epoch: Epoch, number: int, end: Offsets, *, done: bool = True) -> None:
    """Write what Spark writes before a batch, and after it where it is done."""
    epoch._folder.write(f"offsets/{number}", f"v1\n{{}}\n{offsets_as_json(end)}")
    if done:
        epoch._folder.write(f"commits/{number}", "v1\n{}")
