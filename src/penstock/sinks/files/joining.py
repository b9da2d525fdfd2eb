"""Joins the small files that batches leave, so that killing it at any moment loses and doubles nothing.

The joined file is written aside and read back. Then the act is written into the pipeline's journal: from
there on the joining counts, and whoever finds it finishes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from penstock.config.logs import event_logger
from penstock.errors import TransientError
from penstock.pipeline import Batch
from penstock.pipeline.storage import Folder
from penstock.sinks.files.file_writing import Files
from penstock.sinks.files.journal import Act, Journal, State
from penstock.sinks.files.staging import new_staging

log = event_logger(__name__)


class Joining:
    """The joining of one pipeline's files."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._pipeline = journal.pipeline

    @property
    def label(self) -> str:
        """Return the prefix of the names of joined files: no batch has this label."""
        return f"{self._pipeline}~joined"

    def join(self, files: Files, batch: Batch, size: int, least: int) -> None:
        """Join the small files of earlier batches, in each folder that has `least` of them."""
        # Read before the files are listed: later changes by another process are then noticed.
        state = self._journal.settled()
        self._journal.has(batch, state.act)  # raises if another process has the pipeline
        sizes = files.folder.sizes(f"{files.table.folders}{self._pipeline}~*")
        small = {name: sizes[name] for name in sizes if sizes[name] < size / 2}
        earlier = [name for name in small if _order(name) < (batch.epoch, batch.id)]
        for folder, names in _by_folder(earlier):
            if len(names) >= least:
                for together in _filled(names, small, size):
                    state = self._join_one(files, batch, folder, together, state)

    def _join_one(
        self, files: Files, batch: Batch, folder: str, names: list[str], state: State
    ) -> State:
        """Put one file in the place of others; return the journal's state after it."""
        aside = new_staging(f"{self.label}~{'~'.join(map(str, batch.mark))}")
        try:
            added = {
                f"{aside}/{name}": files.place(f"{folder}/{name}".lstrip("/"), self.label)
                for name in files.join(names, aside)
            }
            require_all(files.folder, names)
        except TransientError:
            files.folder.remove(aside)
            self._journal.has(batch, self._journal.state().act)  # raises where it was taken over
            raise
        return self._replace(batch, state, added, names, folder)

    def _replace(
        self, batch: Batch, state: State, added: dict[str, str], removed: list[str], folder: str
    ) -> State:
        before = state.act or Act(batch.as_write)
        act = replace(before, added=added, removed=removed)
        if not self._journal.add(state.next, act):
            self._journal.has(batch, self._journal.state().act)
            raise TransientError(
                f"another process changed the table as {self._pipeline!r} while its files were joined"
            )
        if self._journal.finish(act):
            raise TransientError(f"the joined files of {self._pipeline!r} vanished")
        log.info("files_joined", pipeline=self._pipeline, folder=folder, files=len(removed))
        return State(act, state.next)


def require_all(folder: Folder, names: list[str]) -> None:
    """Raise TransientError where some of the files that were joined are gone meanwhile."""
    if gone := [name for name in names if not folder.exists(name)]:
        raise TransientError(
            f"{gone[0]} was removed from the table while it was joined with others: they stay as they are"
        )


def _order(name: str) -> tuple[float, float]:
    """Return epoch and batch of a file: joined files precede every batch, foreign files follow all.

    >>> _order("day=1/p~0~12~0~part-0.json"), _order("p~joined~part-0.json")
    ((0.0, 12.0), (-1.0, -1.0))
    """
    _, label, *rest = name.rpartition("/")[2].split("~")
    if label == "joined":
        return -1.0, -1.0
    if re.fullmatch(r"\d+", label) and rest and re.fullmatch(r"-?\d+", rest[0]):
        return float(label), float(rest[0])
    return float("inf"), 0.0


def _by_folder(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    def folder(name: str) -> str:
        return name.rpartition("/")[0]

    for name, group in groupby(sorted(names, key=folder), key=folder):
        yield name, sorted(group, key=_order)


def _filled(names: list[str], sizes: dict[str, int], most: int) -> Iterator[list[str]]:
    """Put files together until the next one would be too many; one alone stays as it is.

    >>> list(_filled(["a", "b", "c", "d"], {"a": 4, "b": 4, "c": 4, "d": 1}, most=9))
    [['a', 'b'], ['c', 'd']]
    """
    together: list[str] = []
    for name in names:
        if together and sum(sizes[each] for each in together) + sizes[name] > most:
            if len(together) > 1:
                yield together
            together = []
        together.append(name)
    if len(together) > 1:
        yield together
