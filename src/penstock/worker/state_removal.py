"""Removal of the checkpoints of a deployment that is deleted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from py4j.protocol import Py4JError

from penstock.config import resolve_references
from penstock.control.job_spec import pipeline_name
from penstock.engine import spark_session
from penstock.engine.state_dir import is_state, locked, state_place
from penstock.errors import SetupError
from penstock.pipeline.storage import Folder, is_uri, on_this_disk

# One of these is in the folder of every epoch.
_OF_AN_EPOCH = ("penstock-topics.json", "offsets")


def remove_state(definition: Mapping[str, Any]) -> None:
    """Remove the checkpoints of a definition's pipeline, if the folder was created by a pipeline.

    The definition may be a row that others wrote: no other folder is removed, and no code is loaded.
    """
    given = resolve_references(definition.get("state") or "")
    state = on_this_disk(state_place(str(definition["name"]), str(given)))
    name = Path(state).name
    if pipeline_name(name) != name:
        return
    if is_uri(state):
        _remove_at_uri(state, name)
    elif is_state(Path(state)):
        with locked(state, name):
            shutil.rmtree(state, ignore_errors=True)


def _remove_at_uri(state: str, name: str) -> None:
    """Remove a state through Java, under its lock: a process that was taken over from may still write."""
    try:
        folder = Folder(spark_session(), state)
        epochs = filter(str.isdigit, folder.names())
        if any(folder.exists(f"{epoch}/{file}") for epoch in epochs for file in _OF_AN_EPOCH):
            with locked(state, name, leased=True):
                folder.remove("")
    except Py4JError as error:
        raise SetupError(f"{state} cannot be removed: {str(error)[:500]}") from None


class Removal:
    """Removes a state in a thread: the store where it is may be slow, or be away."""

    def __init__(self, remove: Callable[[], object], on_end: Callable[[], object]) -> None:
        self._remove = remove
        self._on_end = on_end
        self._error: Exception | None = None
        self._thread = Thread(target=self._run, name="state-removal", daemon=True)
        self._thread.start()

    def is_over(self, within: float | None = None) -> bool:
        """Return whether it has ended, after at most these seconds."""
        self._thread.join(within)
        return not self._thread.is_alive()

    def result(self) -> None:
        """Raise the error that it ended with."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._remove()
        except Exception as error:  # `result` raises it
            self._error = error
        finally:
            self._on_end()
