"""Where a pipeline keeps its state on this machine, and who may use it: one process at a time."""

from __future__ import annotations

import fcntl
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from penstock.config.places import data_dir
from penstock.errors import ConfigError, SetupError
from penstock.pipeline import Pipeline
from penstock.pipeline.storage import absolute, is_uri


def state_folder(pipeline: Pipeline) -> str:
    """Return the folder or URI in which a pipeline keeps its checkpoints."""
    return f"{absolute(pipeline.state or str(data_dir() / 'pipelines'))}/{pipeline.name}"


def locked(state: str, name: str) -> ExitStack:
    """Refuse a second process that would run the same pipeline with the same state."""
    held = ExitStack()
    if is_uri(state):
        return held
    try:
        Path(state).mkdir(parents=True, exist_ok=True)
        lock: IO[str] = held.enter_context((Path(state) / "lock").open("w"))
    except OSError as error:
        raise SetupError(
            f"cannot write the state of pipeline {name!r} under {state}: {error.strerror}; "
            "give it a folder with 'state:'"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise ConfigError(
            f"pipeline {name!r} already runs in another process with its state under {state}; "
            "stop that one, or give this one another name"
        ) from None
    return held
