"""Where a pipeline keeps its state, and who may use it: one process at a time."""

from __future__ import annotations

import errno
import fcntl
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from pyspark.sql import SparkSession

from penstock.config.directories import create_private, data_dir
from penstock.config.logs import event_logger
from penstock.engine.lease import Lease, OnLost
from penstock.engine.session import spark_session
from penstock.errors import ConfigError, FencedError, SetupError, TransientError
from penstock.pipeline import Pipeline, SparkOptions
from penstock.pipeline.storage import Folder, absolute, is_uri, on_this_disk

log = event_logger(__name__)


def state_folder(pipeline: Pipeline) -> str:
    """Return the folder or URI in which a pipeline keeps its checkpoints."""
    return state_place(pipeline.name, pipeline.state)


def state_place(name: str, state: str | None) -> str:
    """Return the folder or URI in which the pipeline of this name keeps its checkpoints."""
    return f"{absolute(state or str(data_dir() / 'pipelines'))}/{name}"


def is_state(folder: Path) -> bool:
    """Return whether a folder is the state of a pipeline: a lock, and a folder for each epoch."""
    try:
        names = {entry.name for entry in folder.iterdir()}
    except OSError:
        return False
    return "lock" in names and (len(names) == 1 or any(map(str.isdigit, names)))


def _ignored(_lost: FencedError) -> None:
    """Ignore it: the next call that needs the lease raises."""


def locked(
    state: str,
    name: str,
    options: SparkOptions | None = None,
    on_lost: OnLost = _ignored,
    *,
    leased: bool = False,
) -> ExitStack:
    """Refuse a second process that would run the same pipeline with the same state.

    On this disk the system holds the lock. Behind a URI it is a lease, for which Spark is started with
    these options; `on_lost` is called where another process took it over from this one.

    A process that is `leased`, that has the lease of the control plane, takes the state over at once:
    the one that has it may be suspended, and is refused by the sinks.
    """
    held = ExitStack()
    place = on_this_disk(state)
    if is_uri(place):
        spark_session(options)
        held.enter_context(Lease(lambda: _folder_now(state), name, on_lost, at_once=leased))
        return held
    try:
        # Only a new folder: one that is there may be shared with the executors of a cluster.
        create_private(Path(place))
        lock: IO[str] = held.enter_context((Path(place) / "lock").open("w"))
    except OSError as error:
        raise _unwritable(name, state, error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        if leased:
            log.warning("state_taken_over", pipeline=name, state=state)
            return held
        raise ConfigError(
            f"pipeline {name!r} already runs in another process with its state under {state}; "
            "stop that one, or give this one another name"
        ) from None
    return held


def _unwritable(name: str, state: str, error: OSError) -> SetupError | TransientError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TransientError(
            f"there is no space left to write the state of pipeline {name!r} under {state}: free some"
        )
    return SetupError(
        f"cannot write the state of pipeline {name!r} under {state}: {error.strerror}; "
        "give it a folder with 'state:'"
    )


def _folder_now(state: str) -> Folder | None:
    """Return the folder through the session of now: one whose Java process died cannot be used."""
    current: Any = SparkSession
    session = current._instantiatedSession
    return Folder(session, state) if session is not None else None
