"""The source `files`: its options, which files have something to read, what becomes of finished ones."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from penstock.errors import TransientError
from penstock.imports.files.file_contents import FORMS, GROWING
from penstock.imports.files.watched_file import WatchedFile, listed
from penstock.pipeline.importing import (
    Import,
    Part,
    Place,
    Portion,
    Position,
    Reader,
    System,
    key_of,
)
from penstock.pipeline.values import Duration

_LOOKED_AT = 2**20


class FilesImport(Import):
    """The files of a folder that grows: lines, CSV, JSON or Parquet, each line or row as a record.

    A file is known by its identity (the inode), not by its name: one that is renamed, as by log rotation,
    goes on where it was; a new file under an old name is read from its start, and so is one that was
    truncated or whose beginning has changed. Files that end with .gz or .zst are decompressed.

    Lines, CSV and JSON lines may grow while they are read; a last line without an end waits until the
    file has been quiet. Other forms, and compressed files, are read when they have been quiet.
    """

    name = "files"
    main_option = "folder"
    topic_names = frozenset({"file"})

    folder: str = Field(min_length=1, description="The folder, which all tasks can read.")
    pattern: str = Field(default="*", min_length=1, description="Which names, as in *.log.")
    recursive: bool = Field(default=False, description="Whether folders in it are read, too.")
    follow_links: bool = Field(
        default=False,
        description="Whether symbolic links are followed: they may lead out of the folder.",
    )
    format: Literal["lines", "csv", "json_lines", "json_array", "parquet", "whole"] = Field(
        default="lines",
        description="`lines` as they are; `csv` with a header, each row as a JSON object; `json_lines`; "
        "the elements of one `json_array`; rows of `parquet` as JSON objects; the `whole` file.",
    )
    quiet: Duration = Field(
        default=10.0,
        ge=0,
        description="A file that was not changed for this long is complete.",
    )
    finished: Literal["keep", "move", "delete"] = Field(
        default="keep", description="What happens to a complete file when all of it is in Kafka."
    )
    finished_folder: str | None = Field(default=None, description="Where `move` puts it.")

    @model_validator(mode="after")
    def _has_a_place_to_move_to(self) -> FilesImport:
        if (self.finished == "move") != (self.finished_folder is not None):
            raise ValueError(
                "'finished: move' and 'finished_folder' belong together: give both, or neither"
            )
        if "/" in self.pattern:
            raise ValueError(
                f"the pattern {self.pattern!r} is about names; give 'folder', and 'recursive: true' for "
                "the folders in it"
            )
        inside = self.finished_folder and Path(self.finished_folder).resolve()
        if inside and inside.is_relative_to(Path(self.folder).resolve()) and self.recursive:
            raise ValueError(
                "finished_folder is in the folder that is read, and 'recursive' is set"
            )
        return self

    def system(self) -> System:
        """Return the folder."""
        return WatchedFolder(self)


@dataclass(frozen=True)
class WatchedFolder(System):
    """The folder, as it is listed in each round."""

    options: FilesImport

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the files that have something to read; move or delete those that are finished."""
        parts: list[Part] = []
        unreadable: OSError | None = None
        for file in self._files():
            try:
                parts += self._part(file, positions)
            except FileNotFoundError:
                continue  # renamed or removed meanwhile
            except OSError as error:
                unreadable = error
        if unreadable and not parts:
            raise TransientError(f"{unreadable.filename} cannot be read: {unreadable.strerror}")
        return parts

    def _files(self) -> Iterator[WatchedFile]:
        options = self.options
        return listed(
            options.folder,
            options.pattern,
            recursive=options.recursive,
            links=options.follow_links,
        )

    def _part(self, file: WatchedFile, positions: Mapping[str, Position]) -> list[Part]:
        # A time in the future is one of a wrong clock, not of a file that is being written.
        complete = abs(time.time() - file.modified) >= self.options.quiet
        part = FilePart(file, self.options.format, complete)
        position = positions.get(key_of(part.place))
        if part.has_more(position):
            return [part]
        if complete and position is not None:
            self._finish(file)
        return []

    def _finish(self, file: WatchedFile) -> None:
        if self.options.finished == "delete":
            Path(file.path).unlink(missing_ok=True)
        elif self.options.finished_folder is not None:
            target = Path(self.options.finished_folder)
            target.mkdir(parents=True, exist_ok=True)
            name = Path(file.path).name
            # Two files of one name on different days: neither replaces the other.
            aim = target / name if not (target / name).exists() else target / f"{name}.{file.inode}"
            shutil.move(file.path, aim)


@dataclass(frozen=True)
class FilePart(Part):
    """One file."""

    file: WatchedFile
    format: str
    complete: bool

    @property
    def place(self) -> Place:
        """Return its identity."""
        return {"inode": self.file.inode}

    @property
    def names(self) -> Mapping[str, str]:
        """Return its name, without what comes after the first dot."""
        return {"file": Path(self.file.path).name.partition(".")[0] or "file"}

    @property
    def grows(self) -> bool:
        """Return whether it is read while it grows."""
        return self.format in GROWING and self.file.packing is None

    def has_more(self, position: Position | None) -> bool:
        """Return whether there is anything after a position, without reading much."""
        if not self.grows:
            return self.complete and (position is None or not self._is_done(position))
        at = self.start(position)
        if self.file.size <= at:
            return False
        return self.complete or self._has_line(at)

    def start(self, position: Position | None) -> int:
        """Return where to read on: at the start where the content is not that of the position."""
        if position is None or not self.file.is_continued(position):
            return 0
        at: int = position["at"]
        if self.grows:
            return at if at <= self.file.size else 0
        same = position.get("size", self.file.size) == self.file.size
        return at if same else 0

    def _is_done(self, position: Position) -> bool:
        file = self.file
        seen = position.get("done") and (position["size"], position["modified"])
        return bool(seen == (file.size, file.modified) and file.is_continued(position))

    def _has_line(self, at: int) -> bool:
        with Path(self.file.path).open("rb") as file:
            file.seek(at)
            data = file.read(_LOOKED_AT)
        return b"\n" in data or len(data) == _LOOKED_AT

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Read on; what the file has by now is read, too."""
        yield FileReader(self, self.start(position))


class FileReader(Reader):
    """A file that is being read."""

    def __init__(self, part: FilePart, at: int) -> None:
        self._part = part
        self._pieces = FORMS[part.format](part.file, at, part.complete)
        self._at = at
        self._ended = False

    def take(self, most: int) -> Iterator[Portion]:
        """Yield what comes next; at its end, a file that does not grow is noted as done."""
        if self._ended:
            return
        file, count = self._part.file, 0
        for piece in self._pieces:
            self._at = piece.end
            yield Portion.of(piece.values, file.position(piece.end), bad=piece.bad)
            count += len(piece.values) + len(piece.bad)
            if count >= most:
                return
        self._ended = True
        if not self._part.grows:
            yield Portion.of([], file.position(self._at, done=True))
