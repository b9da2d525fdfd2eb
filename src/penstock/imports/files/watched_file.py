"""A file as the import knows it: by its identity, whatever its name is now, with how far it was read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import BinaryIO

import pyarrow as pa

from penstock.errors import ConfigError, TransientError
from penstock.imports.files.packed_names import packing_of
from penstock.pipeline.importing import Position, UnreadableError

_DIGESTED = 1024


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
        return packing_of(self.path)

    @property
    def name(self) -> str:
        """Return its name, in which bytes that are not UTF-8 are shown."""
        return Path(self.shown_path).name

    @property
    def shown_path(self) -> str:
        """Return its path, in which bytes that are not UTF-8 are shown."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    def open(self) -> OpenedFile | None:
        """Open it; None where another file has its name by now, or none has it."""
        try:
            file = Path(self.path).open("rb")  # noqa: SIM115 - the opened file closes it
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.path, error) from None
        if os.fstat(file.fileno()).st_ino == self.inode:
            return OpenedFile(self, file)
        file.close()
        return None


class OpenedFile:
    """An open file: what is read of it, and its digests, are of this one, whatever has its name."""

    def __init__(self, listed: WatchedFile, file: BinaryIO) -> None:
        self.listed = listed
        self.path = listed.name
        # Whether a last line without an end is one; set by who knows how long the file was quiet.
        self.complete = False
        self._file = file

    def __enter__(self) -> OpenedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def as_now(self) -> WatchedFile:
        """Return the file as it is at this moment."""
        status = os.fstat(self._file.fileno())
        return WatchedFile(self.listed.path, status.st_ino, status.st_size, status.st_mtime)

    def is_as_listed(self) -> bool:
        """Return whether it was not written since it was listed."""
        return self.as_now() == self.listed

    def stream(self) -> BinaryIO:
        """Return its content from the start; what comes out is not compressed."""
        copy = os.fdopen(os.dup(self._file.fileno()), "rb")
        copy.seek(0)
        if self.listed.packing is None:
            return copy
        packed = pa.CompressedInputStream(pa.PythonFile(copy, "r"), self.listed.packing)
        return BufferedReader(packed)

    def raise_failure(self) -> None:
        """Raise nothing: what fails of a file is the error of the reading itself."""

    def position(self, at: int, format: str, *, grows: bool, done: bool = False) -> Position:
        """Return the position after `at`: bytes, rows or elements.

        Of a file that does not grow it is one of the content that was listed: another is read again.
        """
        found: Position = {"at": at, "file": self.path, "format": format}
        if grows:
            head, tail = min(at, _DIGESTED), max(0, at - _DIGESTED)
            found |= {"head": self._digest(0, head), "tail": self._digest(tail, at)}
            found |= {"modified": self.as_now().modified}
        else:
            found |= {"size": self.listed.size, "modified": self.listed.modified}
        return found | ({"done": True} if done else {})

    def first_position(self, at: int, format: str, *, grows: bool) -> Position:
        """Return a position before anything is read after `at`, by as much of the content as there is."""
        known = max(at, min(self.listed.size, _DIGESTED)) if grows else at
        return self.position(known, format, grows=grows)

    def has_content_of(self, position: Position, *, grows: bool) -> bool:
        """Return whether the content is still the one that a position is of."""
        return self._is_continued(position, position["at"], grows, goes=False)

    def start(
        self, position: Position | None, format: str, *, grows: bool, goes: bool = False
    ) -> int:
        """Return where to read on: at the start, where the content is not that of the position.

        Where files go when they are finished, or under another name, one of the same content that was
        written later is another: systems give the number of a deleted file to the next one.
        An operator who sets a position need not know the content: `{"at": 0}` will do.
        """
        if position is None:
            return 0
        at = position.get("at")
        if not isinstance(at, int) or at < 0 or position.get("format", format) != format:
            raise ConfigError(
                f"the position {position} of {self.path} is not one of a file that is read as {format}; "
                'allowed: {"at": N}, with the number of bytes, rows or elements that are read: set it, '
                "or reset it to read the file again"
            )
        return at if self._is_continued(position, at, grows, goes=goes) else 0

    def _is_continued(self, position: Position, at: int, grows: bool, *, goes: bool) -> bool:
        now = self.as_now()
        if grows:
            wanted = position.get("head"), position.get("tail")
            head, tail = min(at, _DIGESTED), max(0, at - _DIGESTED)
            own = self._digest(0, head), self._digest(tail, at)
            later = position.get("modified", now.modified) != now.modified
            renamed = position.get("file", self.path) != self.path
            is_another = at == now.size and later and (goes or renamed)
            return at <= now.size and wanted in ((None, None), own) and not is_another
        seen = position.get("size", now.size), position.get("modified", now.modified)
        return seen == (now.size, now.modified)

    def _digest(self, start: int, end: int) -> str:
        data = os.pread(self._file.fileno(), end - start, start)
        return hashlib.sha256(data).hexdigest()[:16]


def listed(
    folder: str, pattern: str, *, recursive: bool, links: bool = False
) -> Iterator[WatchedFile]:
    """Yield the files of a folder whose names match, in their order; links to one file once."""
    seen: dict[int, int] = {}
    for path in sorted(_paths(folder, pattern, recursive)):
        try:
            status = os.lstat(path)
            if S_ISLNK(status.st_mode) and links:
                status = os.stat(path)  # noqa: PTH116 - the name may have any bytes
        except OSError:
            continue  # renamed or removed meanwhile, or a link that leads nowhere
        if not S_ISREG(status.st_mode):
            continue
        if status.st_ino in seen:
            if seen[status.st_ino] != status.st_dev:
                raise ConfigError(
                    f"{path} and another file have the same number on two file systems: import each "
                    "file system with a pipeline of its own"
                )
            continue
        seen[status.st_ino] = status.st_dev
        yield WatchedFile(path, status.st_ino, status.st_size, status.st_mtime)


def _paths(folder: str, pattern: str, recursive: bool) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        if isinstance(error, FileNotFoundError) and error.filename == folder:
            raise UnreadableError(f"the folder {folder} is not there (any more)")
        if not isinstance(error, FileNotFoundError):
            raise _unreadable(f"the folder {error.filename}", error)

    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if recursive and not name.startswith(".")]
        for name in names:
            if fnmatchcase(name, pattern) and not name.startswith("."):
                yield f"{root}/{name}"


def _unreadable(what: str, error: OSError) -> TransientError:
    """Return the error: a missing right does not come by itself, as a disk that is away may."""
    text = f"{what} cannot be read: {error.strerror}"
    if isinstance(error, PermissionError | NotADirectoryError):
        return UnreadableError(f"{text}; change that, or leave it out by 'pattern' or 'folder'")
    return TransientError(text)
