"""Folders for files that are not in the table yet: each belongs to one write of one process."""

from __future__ import annotations

import re
from uuid import uuid4

from penstock.pipeline import Mark
from penstock.pipeline.storage import Folder
from penstock.sinks.files.file_table import HIDDEN

# Older versions made the same names without the last part.
_NAME = re.compile(r"(.+)~(\d+)~(-?\d+)~(\d+)(?:\.[0-9a-f]+)?")


def new_staging(label: str) -> str:
    """Return the name of a folder that no other write has, not even one of the same batch."""
    return f"{HIDDEN}/{label}.{uuid4().hex[:12]}"


def remove_staging(folder: Folder, pipeline: str, upto: Mark, *, older_epochs: bool) -> None:
    """Remove what this very pipeline left of its writes up to a mark, after a crash or a failure.

    Folders of other names are never touched, also where a name begins with this one: a replay, the dead
    letters and their notes write next to a running pipeline. Those of older epochs are removed only
    where their owner can no longer bring them into the table.
    """
    for name in folder.names(HIDDEN):
        owner, mark = _owner(name)
        if owner not in (pipeline, f"{pipeline}~joined") or mark is None:
            continue
        own = mark.epoch == upto.epoch and mark.batch <= upto.batch
        if own or (older_epochs and mark.epoch < upto.epoch):
            folder.remove(f"{HIDDEN}/{name}")


def epoch_in(name: str, pipeline: str) -> int | None:
    """Return the epoch in the name of a file of the table, None where it is not one of this pipeline.

    >>> epoch_in("day=1/p~7~12~0~part-0.json", "p"), epoch_in("p~replay~0~1~0~part-0.json", "p")
    (7, None)
    """
    match = re.match(r"(\d+)~-?\d+~\d+~", name.rpartition("/")[2].removeprefix(f"{pipeline}~"))
    return int(match[1]) if match else None


def _owner(name: str) -> tuple[str, Mark | None]:
    """Return the pipeline and the mark of a folder's name.

    >>> _owner("p~replay~0~5~1.0a1b"), _owner("p~7~3~0"), _owner("table-1.json")
    (('p~replay', Mark(epoch=0, batch=5, part=1)), ('p', Mark(epoch=7, batch=3, part=0)), ('', None))
    """
    if not (match := _NAME.fullmatch(name)):
        return "", None
    return match[1], Mark(*map(int, match.groups()[1:]))
