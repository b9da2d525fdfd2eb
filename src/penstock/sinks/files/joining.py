"""Joins the small files that batches leave, so that killing it at any moment loses and doubles nothing.

The joined file is written aside. Then a journal is written, whole or not at all: from there on the
joining counts, and whoever finds the journal finishes it. Finishing twice does no more than once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from penstock.config.logs import event_logger
from penstock.errors import TerminalError
from penstock.pipeline import Batch
from penstock.pipeline.storage import Folder
from penstock.sinks.files.table import HIDDEN
from penstock.sinks.files.writing import Files

log = event_logger(__name__)


@dataclass(frozen=True)
class Joining:
    """The joining of one pipeline's files."""

    folder: Folder
    pipeline: str

    @property
    def label(self) -> str:
        """How the names of joined files begin: no batch has this label, so none takes them back."""
        return f"{self.pipeline}~joined"

    def finish(self) -> None:
        """Finish what was begun, if anything was."""
        journal = self.folder.read(self._journal)
        if journal is not None:
            self._replace(**json.loads(journal))
        self.folder.remove(self._aside)
        self.folder.remove(self._journal)

    def join(self, files: Files, batch: Batch, size: int, least: int) -> None:
        """Join the small files of earlier batches, in each folder that has `least` of them.

        The batch itself is left alone: it may be run again and must find its files by their names.
        """
        self.finish()
        found = files.folder.sizes(f"{files.table.folders}{self.pipeline}~*")
        small = {name: found[name] for name in found if found[name] < size / 2}
        earlier = [name for name in small if _place_in_time(name) < (batch.epoch, batch.id)]
        for folder, names in _by_folder(earlier):
            if len(names) >= least:
                for together in _filled(names, small, size):
                    self._join_one(files, folder, together)

    def _join_one(self, files: Files, folder: str, names: list[str]) -> None:
        written = files.join(names, self._aside)
        added = {
            f"{self._aside}/{name}": files.place(f"{folder}/{name}".lstrip("/"), self.label)
            for name in written
        }
        self.folder.write(self._journal, json.dumps({"added": added, "removed": names}))
        self.finish()
        log.info("files_joined", pipeline=self.pipeline, folder=folder, files=len(names))

    def _replace(self, added: dict[str, str], removed: list[str]) -> None:
        for aside, name in added.items():
            if self.folder.exists(aside):
                self.folder.remove(name)
                self.folder.move(aside, name)
            elif not self.folder.exists(name):
                raise TerminalError(
                    f"{self.folder.uri}/{self._journal} says that {name} takes the place of "
                    f"{len(removed)} files, and it is not there: bring it back, or, if those files are "
                    "still there, remove that journal"
                )
        for name in removed:
            self.folder.remove(name)

    @property
    def _journal(self) -> str:
        return f"{HIDDEN}/{self.label}.json"

    @property
    def _aside(self) -> str:
        return f"{HIDDEN}/{self.label}"


def _place_in_time(name: str) -> tuple[float, float]:
    """Epoch and batch of a file; what was joined is older than any batch, and what is not ours never was.

    >>> _place_in_time("day=1/p~0~12~0~part-0.json"), _place_in_time("p~joined~part-0.json")
    ((0.0, 12.0), (-1.0, -1.0))
    """
    _, label, *rest = name.rpartition("/")[2].split("~")
    if label == "joined":
        return -1.0, -1.0
    if re.fullmatch(r"\d+", label) and rest and re.fullmatch(r"\d+", rest[0]):
        return float(label), float(rest[0])
    return float("inf"), 0.0


def _by_folder(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    def folder(name: str) -> str:
        return name.rpartition("/")[0]

    for found, group in groupby(sorted(names, key=folder), key=folder):
        yield found, sorted(group, key=_place_in_time)


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
