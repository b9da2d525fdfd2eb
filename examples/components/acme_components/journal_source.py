"""The source `journal`: the lines of a file that others append to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from penstock.pipeline.importing import Import, Part, Portion, Position, Reader, System


class JournalImport(Import):
    """Each line as a record; a line that is still being written waits."""

    name = "journal"
    main_option = "path"
    path: Path

    def system(self) -> System:
        return Journal(self.path)


@dataclass(frozen=True)
class Journal(System, Part):
    path: Path

    @property
    def place(self) -> dict[str, str]:
        return {"file": str(self.path)}

    def pending(self, _positions: Mapping[str, Position]) -> list[Part]:
        return [self]

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        with self.path.open("rb") as file:
            file.seek(position["at"] if position else 0)
            yield Lines(file)


@dataclass
class Lines(Reader):
    file: BinaryIO

    def take(self, most: int) -> Iterator[Portion]:
        at, lines = self.file.tell(), []
        for line in self.file:
            if not line.endswith(b"\n") or len(lines) == most:
                break
            lines.append(line[:-1])
            at += len(line)
        self.file.seek(at)
        if lines:
            yield Portion.of(lines, {"at": at})
