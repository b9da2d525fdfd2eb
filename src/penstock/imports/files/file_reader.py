"""What a task reads of a file or an object: its pieces, each with the position after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Protocol

import pyarrow as pa

from penstock.errors import TransientError
from penstock.imports.files.file_contents import FORMS, Content, Piece
from penstock.pipeline.importing import BadRecord, Portion, Position, Reader

NAME, PATH = "file.name", "file.path"
"""The headers of records that say of which file they are."""
_HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))


class Opened(Content, Protocol):
    """A content with positions in it."""

    def position(self, at: int, format: str, *, grows: bool, done: bool = False) -> Position:
        """Return the position after `at`: bytes, rows or elements."""
        ...

    def first_position(self, at: int, format: str, *, grows: bool) -> Position:
        """Return a position before anything is read after `at`."""
        ...

    def has_content_of(self, position: Position, *, grows: bool) -> bool:
        """Return whether the content is still the one that a position is of."""
        ...

    def raise_failure(self) -> None:
        """Raise why it could not be read on, where that is not because of what is in it."""
        ...


def topic_names_of(path: str) -> Mapping[str, str]:
    """Return the names for a topic's template: the file's, without what comes after the first dot.

    >>> topic_names_of("logs/app.2026.log")
    {'file': 'app'}
    """
    return {"file": PurePosixPath(path).name.partition(".")[0] or "file"}


class NothingToRead(Reader):
    """A file that is gone, or has another name by now, under which the next round finds it."""

    def take(self, _most: int) -> Iterator[Portion]:
        """Yield nothing."""
        return iter(())


class FileReader(Reader):
    """A file that is being read."""

    def __init__(
        self, file: Opened, format: str, at: int, *, grows: bool, origin: str | None = None
    ) -> None:
        self._file = file
        # The path that records have in their headers, if they are to have any.
        self._origin = origin
        self._format = format
        self._grows = grows
        self._pieces = FORMS[format](file, at)
        self._at = at
        self._ended = not grows and not file.complete
        self._known = file.first_position(at, format, grows=grows)

    def take(self, most: int) -> Iterator[Portion]:
        """Yield what comes next; at its end, a file that does not grow is noted as done.

        A content that is not of the format is one bad record, and ends the file. One that was replaced
        while it was read ends it, too: the next round reads the new content from its start.
        """
        count = 0
        while not self._ended and count < most:
            piece = self._next_piece()
            self._ended = piece is None
            if piece is None:
                if self._grows:
                    return
                # 0 is where a changed file begins: it would come again.
                piece = Piece([], [], max(self._at, 1))
            self._at = piece.end
            position = self._position(done=self._ended)
            if not self._file.has_content_of(self._known, grows=self._grows):
                # By now, or already when the piece was read.
                self._ended = True
                return
            if self._at > self._known["at"]:  # otherwise more of the content was known before
                self._known = position
            yield self._portion(piece, position)
            count += len(piece.values) + len(piece.bad)

    def _next_piece(self) -> Piece | None:
        try:
            return next(self._pieces, None)
        except (ValueError, OSError, EOFError, RecursionError, pa.ArrowException) as error:
            self._raise_unless_content(error)
            bad = BadRecord(None, f"{self._file.path}: {error}", type(error).__name__)
            self._pieces = iter(())
            return Piece([], [bad], max(self._at, 1))

    def _portion(self, piece: Piece, position: Position) -> Portion:
        portion = Portion.of(piece.values, position, bad=piece.bad)
        if self._origin is None:
            return portion
        name = PurePosixPath(self._origin).name
        headers = [
            {"key": NAME, "value": name.encode()},
            {"key": PATH, "value": self._origin.encode()},
        ]
        columns = {
            "value": pa.array(piece.values, pa.binary()),
            "headers": pa.array([headers] * len(piece.values), _HEADERS),
        }
        return replace(portion, records=pa.record_batch(columns))

    def _position(self, *, done: bool = False) -> Position:
        return self._file.position(self._at, self._format, grows=self._grows, done=done)

    def _raise_unless_content(self, error: Exception) -> None:
        """Raise an error that does not say that the content is not of its format."""
        self._file.raise_failure()
        if isinstance(error, OSError) and error.errno:
            raise TransientError(f"{self._file.path} cannot be read: {error.strerror}") from error
        if self._grows or isinstance(error, MemoryError):
            raise error
