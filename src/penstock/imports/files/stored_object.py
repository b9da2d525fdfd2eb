"""An object that is read: by ranges, of one version of it only."""

from __future__ import annotations

from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO

import pyarrow as pa

from penstock.errors import ConfigError, PenstockError
from penstock.imports.files.object_store import ObjectStore, StoredObject, replaced
from penstock.imports.files.packed_names import packing_of
from penstock.pipeline.importing import Position

# How much is fetched with one request.
_RANGE = 8 * 2**20


class OpenedObject:
    """An object as it was listed: nothing is read of another content that has its name by now."""

    # An object is never appended to: its last line is complete.
    complete = True

    def __init__(self, store: ObjectStore, listed: StoredObject) -> None:
        self.path = listed.path
        self._store = store
        self._listed = listed
        self._failure: PenstockError | None = None

    def is_as_listed(self) -> bool:
        """Return whether it still has the content that was listed."""
        now = self._store.now(self.path)
        return now is not None and now.version == self._listed.version

    def stream(self) -> BinaryIO:
        """Return its content from the start; what comes out is not compressed."""
        plain = BufferedReader(Ranges(self, self._listed.size), _RANGE)
        packing = packing_of(self.path)
        if packing is None:
            return plain
        packed = pa.CompressedInputStream(pa.PythonFile(plain, "r"), packing)
        return BufferedReader(packed)

    def fetch(self, start: int, end: int) -> bytes:
        """Return a range of this content; raise where it has been replaced."""
        try:
            data = self._store.fetch(self.path, start, end)
            # Only now: a content of the same version before and after this is what was fetched.
            if len(data) != end - start or not self.is_as_listed():
                raise replaced(self.path)
        except PenstockError as error:
            self._failure = error
            raise
        return data

    def raise_failure(self) -> None:
        """Raise why a range could not be fetched: readers of formats report it as a bad content."""
        if self._failure is not None:
            raise self._failure

    def position(self, at: int, format: str, *, grows: bool, done: bool = False) -> Position:  # noqa: ARG002
        """Return the position after `at`: bytes, rows or elements."""
        listed = self._listed
        found = {"at": at, "format": format, "version": listed.version, "modified": listed.modified}
        return found | ({"done": True} if done else {})

    def first_position(self, at: int, format: str, *, grows: bool) -> Position:
        """Return a position before anything is read after `at`."""
        return self.position(at, format, grows=grows)

    def has_content_of(self, position: Position, *, grows: bool) -> bool:  # noqa: ARG002
        """Return True: each range that is fetched is of the listed content, or is not read."""
        return True


def start_of(listed: StoredObject, position: Position | None, format: str, *, goes: bool) -> int:
    """Return where to read an object on: at its start, where it has another content by now.

    Where objects go when they are finished, one of the same content that was written later is another.
    An operator who sets a position need not know the version: `{"at": 0}` will do.
    """
    if position is None:
        return 0
    at = position.get("at")
    if not isinstance(at, int) or at < 0 or position.get("format", format) != format:
        raise ConfigError(
            f"the position {position} of {listed.path} is not one of an object that is read as {format}; "
            'allowed: {"at": N}, with the number of bytes, rows or elements that are read: set it, or '
            "reset it to read the object again"
        )
    return at if has_content_of(listed, position, goes=goes) else 0


def has_content_of(listed: StoredObject, position: Position, *, goes: bool) -> bool:
    """Return whether an object has the content that a position is about."""
    if goes and position.get("modified", listed.modified) != listed.modified:
        return False
    return bool(position.get("version", listed.version) == listed.version)


class Ranges(RawIOBase):
    """The bytes of an object, each request a range of bounded size."""

    def __init__(self, opened: OpenedObject, size: int) -> None:
        self._opened = opened
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte; no request is made."""
        self._at = max(0, offset + {0: 0, 1: self._at, 2: self._size}[whence])
        return self._at

    def tell(self) -> int:
        """Return the byte that is read next."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fetch what comes next."""
        end = min(self._at + min(len(buffer), _RANGE), self._size)
        if end <= self._at:
            return 0
        data = self._opened.fetch(self._at, end)
        buffer[: len(data)] = data
        self._at = end
        return len(data)
