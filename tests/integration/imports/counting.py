"""An import for tests: files with a number each, which say how far to count; a part for each file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.errors import TransientError
from penstock.pipeline.importing import (
    BadRecord,
    Import,
    Part,
    Place,
    Portion,
    Position,
    Reader,
    System,
)

_AT_ONCE = 100


class CountingImport(Import):
    """Numbers from 0 up to what each file of a folder says; -1 in a number's place is a bad record."""

    name = "counting"
    topic_names = frozenset({"file"})
    folder: Path

    def system(self) -> System:
        return Counters(self.folder)


@dataclass(frozen=True)
class Counters(System):
    folder: Path

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        if (self.folder / "away").exists():
            raise TransientError("the counters are away")
        parts = [Counter(file) for file in sorted(self.folder.glob("*.count"))]
        return [part for part in parts if part.end() > positions.get(part.key, {"n": 0})["n"]]


@dataclass(frozen=True)
class Counter(Part):
    file: Path

    @property
    def place(self) -> Place:
        return {"file": self.file.stem}

    @property
    def key(self) -> str:
        return f'{{"file":"{self.file.stem}"}}'

    @property
    def names(self) -> Mapping[str, str]:
        return {"file": self.file.stem}

    def end(self) -> int:
        return int(self.file.read_text() or 0)

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        yield Counting(self, position["n"] if position else 0)


class Counting(Reader):
    def __init__(self, part: Counter, at: int) -> None:
        self.part = part
        self.at = at

    def take(self, most: int) -> Iterator[Portion]:
        until = min(self.part.end(), self.at + most)
        while self.at < until:
            start, self.at = self.at, min(self.at + _AT_ONCE, until)
            good = [n for n in range(start, self.at) if n % 1000 != 999]
            bad = tuple(
                BadRecord(str(n).encode(), f"{n} is unlucky")
                for n in range(start, self.at)
                if n % 1000 == 999
            )
            records = pa.record_batch(
                {
                    "key": pa.array([self.part.file.stem.encode()] * len(good), pa.binary()),
                    "value": pa.array([str(n).encode() for n in good], pa.binary()),
                }
            )
            yield Portion(records, {"n": self.at}, bad)
