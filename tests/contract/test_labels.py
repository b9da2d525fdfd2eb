"""The trap for look-alike labels bites: a sink with any of these mistakes does not pass it."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest
from tests.contract.labels import writes_that_look_alike

from penstock.pipeline import Mark

Removed = Callable[[str, str], bool]
"""Whether a file is taken for one of an earlier run of the write with this label."""


class FilesInMemory:
    """A sink that keeps a file for each write, and first removes those of an earlier run."""

    def __init__(self, removed: Removed, separator: str = "~") -> None:
        self._removed = removed
        self._separator = separator
        self._files: dict[str, list[int]] = {}

    def write(self, pipeline: str, batch: int, part: int, ids: list[int]) -> None:
        label = self._separator.join((pipeline, *map(str, Mark(1, batch, part))))
        self._files = {
            name: kept for name, kept in self._files.items() if not self._removed(name, label)
        }
        self._files[f"{label}~{len(self._files)}.parquet"] = ids

    def read(self) -> list[int]:
        return sorted(number for ids in self._files.values() for number in ids)


class MarksInMemory:
    """A sink that skips what its marks say is written."""

    def __init__(self, key: Callable[[str], str]) -> None:
        self._key = key
        self._marks: dict[str, Mark] = {}
        self._rows: list[int] = []

    def write(self, pipeline: str, batch: int, part: int, ids: list[int]) -> None:
        mark = Mark(1, batch, part)
        if self._marks.get(self._key(pipeline), Mark(0, 0, 0)) >= mark:
            return
        self._marks[self._key(pipeline)] = mark
        self._rows += ids

    def read(self) -> list[int]:
        return sorted(self._rows)


def like(name: str, label: str) -> bool:
    return bool(re.match(re.escape(label).replace("_", ".") + "~.*", name))


RIGHT = [
    FilesInMemory(lambda name, label: name.startswith(f"{label}~")),
    FilesInMemory(lambda name, label: fnmatchcase(name, f"{label}~*")),
    MarksInMemory(lambda pipeline: pipeline),
]
WRONG: dict[str, FilesInMemory | MarksInMemory] = {
    "nothing is removed": FilesInMemory(lambda *_: False),
    "no separator after the label": FilesInMemory(lambda name, label: name.startswith(label)),
    "a sign of names as separator": FilesInMemory(
        lambda name, label: name.startswith(label + "-") or name.startswith(label + "~"), "-"
    ),
    "the label anywhere": FilesInMemory(lambda name, label: f"{label}~" in name),
    "a regular expression": FilesInMemory(lambda name, label: bool(re.match(f"{label}~", name))),
    "a pattern of LIKE": FilesInMemory(like),
    "without case": FilesInMemory(lambda name, label: name.lower().startswith(f"{label}~".lower())),
    "without the part": FilesInMemory(
        lambda name, label: name.startswith(label.rpartition("~")[0] + "~")
    ),
    "one mark for all pipelines": MarksInMemory(lambda _: ""),
    "marks without case": MarksInMemory(str.lower),
}


@pytest.mark.parametrize("sink", RIGHT)
def test_a_sink_that_tells_writes_apart_passes(sink: FilesInMemory | MarksInMemory) -> None:
    expected = writes_that_look_alike(sink.write)
    assert sink.read() == expected


@pytest.mark.parametrize("sink", WRONG.values(), ids=WRONG)
def test_a_sink_that_takes_one_write_for_another_is_caught(
    sink: FilesInMemory | MarksInMemory,
) -> None:
    expected = writes_that_look_alike(sink.write)
    assert sink.read() != expected
