"""A file as the import knows it: by its identity, whatever its name is now, with how far it was read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from penstock.errors import ConfigError, TransientError
from penstock.pipeline.importing import Position

_HEAD = 1024
_PACKED = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True)
class WatchedFile:
    """A file at one moment. The inode identifies it: it stays when the file is renamed or grows."""

    path: str
    inode: int
    size: int
    modified: float

    @property
    def packing(self) -> str | None:
        """Return how it is compressed, by its name."""
        return _PACKED.get(Path(self.path).suffix.lower())

    def open(self) -> BinaryIO:
        """Open it; what comes out is not compressed."""
        try:
            if self.packing is None:
                return Path(self.path).open("rb")
            packed = pa.input_stream(self.path, compression=self.packing)
            return BufferedReader(packed)
        except OSError as error:
            raise TransientError(f"{self.path} cannot be read: {error}") from None

    def head(self, length: int) -> str:
        """Return a digest of its first bytes, compressed as they are."""
        with Path(self.path).open("rb") as file:
            return hashlib.sha256(file.read(length)).hexdigest()[:16]

    def position(self, at: int, *, done: bool = False) -> Position:
        """Return the position after `at`: bytes, rows or elements."""
        length = min(self.size, _HEAD)
        state = {"done": True, "size": self.size, "modified": self.modified} if done else {}
        head = {"head": self.head(length), "head_bytes": length}
        return {"at": at, "file": Path(self.path).name, **head, **state}

    def is_continued(self, position: Position) -> bool:
        """Return whether this is the file of the position, and not other content in its place.

        An operator who sets a position need not know the file's beginning: `{"at": 0}` will do.
        """
        at = position.get("at")
        if not isinstance(at, int) or at < 0:
            raise ConfigError(
                f"the position {position} of {self.path} is not one of a file; allowed: "
                '{"at": N}, with the number of bytes, rows or elements that are read'
            )
        if "head" not in position:
            return True
        if self.size < position["head_bytes"]:
            return False
        return bool(self.head(position["head_bytes"]) == position["head"])


def listed(
    folder: str, pattern: str, *, recursive: bool, links: bool = False
) -> Iterator[WatchedFile]:
    """Yield the files of a folder whose names match, in their order; links to one file once."""
    root = Path(folder)
    seen: dict[int, int] = {}
    try:
        found = sorted(root.rglob(pattern) if recursive else root.glob(pattern))
        if not root.is_dir():
            raise TransientError(f"the folder {folder} is not there (any more)")
    except OSError as error:
        raise TransientError(f"the folder {folder} cannot be read: {error}") from None
    for path in found:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # renamed or removed meanwhile
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if hidden or not path.is_file() or (path.is_symlink() and not links):
            continue
        if status.st_ino in seen:
            if seen[status.st_ino] != status.st_dev:
                raise ConfigError(
                    f"{path} and another file have the same number on two file systems: import each file "
                    "system with a pipeline of its own"
                )
            continue
        seen[status.st_ino] = status.st_dev
        yield WatchedFile(str(path), status.st_ino, status.st_size, status.st_mtime)
