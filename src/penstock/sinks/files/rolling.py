"""Files of about one size: Spark ends a file after some number of rows, and that number is learned."""

from __future__ import annotations

import re

from penstock.sinks.files.file_writing import ALL_ROWS, Files

# A file may be this much larger than wanted: rows differ, and writing it again costs more than it gives.
_TOLERANCE = 1.25
# What Spark calls the file after the first one that it ended for its rows.
_SECOND = re.compile(r"[-.]c001\.")


class Rolling:
    """Keeps files near a size; `rows` is how many rows that takes, once a file has shown it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows = ALL_ROWS

    def roll(self, files: Files, aside: str, written: dict[str, int]) -> list[str]:
        """Split what grew too large; return the names of all files in the folder that count."""
        self._loosen(files, aside, written)
        done, waiting = [], dict(written)
        while waiting:
            name, size = waiting.popitem()
            pieces = self._split(files, aside, name, size) if size > _TOLERANCE * self.size else {}
            waiting |= pieces
            if not pieces:
                done.append(name)
        return done

    def _split(self, files: Files, aside: str, name: str, size: int) -> dict[str, int]:
        """Replace a large file by smaller ones; return none if it has a single row."""
        if (held := files.count(f"{aside}/{name}")) < 2:
            return {}
        self.rows = self._fitting(held, size)
        folder = name.rpartition("/")[0]
        pieces = {}
        for piece, bytes_ in files.split(f"{aside}/{name}", f"{aside}/_pieces", self.rows).items():
            target = f"{folder}/{piece}".lstrip("/")
            files.folder.move(f"{aside}/_pieces/{piece}", f"{aside}/{target}")
            pieces[target] = bytes_
        return pieces

    def _loosen(self, files: Files, aside: str, written: dict[str, int]) -> None:
        """Take more rows for a file where full ones turned out small: the rows did."""
        if not any(_SECOND.search(name) for name in written):
            return
        largest = max(written, key=lambda name: written[name])
        if written[largest] < self.size / 2:
            self.rows = self._fitting(files.count(f"{aside}/{largest}"), written[largest])

    def _fitting(self, rows: int, size: int) -> int:
        return max(1, rows * self.size // size)
