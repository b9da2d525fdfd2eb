"""The source `files`: its options, which files have something to read, what becomes of finished ones."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from penstock.errors import TransientError
from penstock.imports.files.file_contents import GROWING
from penstock.imports.files.file_reader import FileReader, NothingToRead, topic_names_of
from penstock.imports.files.folder_address import check_target, checked_folder
from penstock.imports.files.object_folder import ObjectFolder
from penstock.imports.files.watched_file import OpenedFile, WatchedFile, listed
from penstock.pipeline.importing import (
    Import,
    Part,
    Place,
    Position,
    Reader,
    System,
    key_of,
)
from penstock.pipeline.storage import is_uri
from penstock.pipeline.values import Duration

_LOOKED_AT = 2**20


class FilesImport(Import):
    """The files of a folder that grows: lines, CSV, JSON or Parquet, each line or row as a record.

    A file is known by its identity (the inode), not by its name: one that is renamed, as by log rotation,
    goes on where it was; a new file under an old name is read from its start, and so is one that was
    truncated or whose beginning has changed. Files that end with .gz or .zst are decompressed.

    Lines, CSV and JSON lines may grow while they are read; a last line without an end waits until the
    file has been quiet. Other forms, and compressed files, are read when they have been quiet.

    An object of an object store is known by its name and its version (ETag): it cannot grow, and one that
    is replaced is read from its start.
    """

    name = "files"
    main_option = "folder"
    topic_names = frozenset({"file"})

    # A commit waits for the brokers: few of them make large files faster.
    max_records: int = Field(
        default=100_000, ge=1, description="The most records of one transaction, about."
    )
    folder: str = Field(
        min_length=1,
        description="The folder, which all tasks can read; or one in an object store, as in "
        "`s3://bucket/folder` (any address that fsspec knows).",
    )
    storage_options: dict[str, Any] = Field(
        default_factory=dict,
        description="Options of fsspec's file system for the store: credentials, its address.",
    )
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
    origin_headers: bool = Field(
        default=False,
        description="Whether records have the headers `file.name` and `file.path`.",
    )

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
        if self.finished_folder is not None:
            check_target(self.folder, self.finished_folder, recursive=self.recursive)
        return self

    @model_validator(mode="after")
    def _fits_where_it_is(self) -> FilesImport:
        if is_uri(self.folder):
            if self.follow_links:
                raise ValueError("an object store has no links: leave 'follow_links' out")
        elif self.storage_options:
            raise ValueError(
                "'storage_options' are for a folder in an object store, as in s3://bucket/folder; "
                f"{self.folder!r} is one on this disk"
            )
        return self

    @field_validator("folder", "finished_folder")
    @classmethod
    def _is_a_folder(cls, given: str | None) -> str | None:
        return checked_folder(given) if given else given

    def system(self) -> System:
        """Return the folder."""
        return ObjectFolder(self) if is_uri(self.folder) else WatchedFolder(self)


@dataclass(frozen=True)
class WatchedFolder(System):
    """The folder, as it is listed in each round."""

    options: FilesImport

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the files that have something to read; move or delete those that are finished."""
        parts: list[Part] = []
        unreadable: TransientError | None = None
        for file in self._files():
            try:
                parts += self._part(file, positions)
            except TransientError as error:
                unreadable = error
        if unreadable and not parts:
            raise unreadable
        return parts

    def _files(self) -> Iterator[WatchedFile]:
        options = self.options
        return listed(
            str(Path(options.folder).absolute()),  # a task has a working directory of its own
            options.pattern,
            recursive=options.recursive,
            links=options.follow_links,
        )

    def _part(self, file: WatchedFile, positions: Mapping[str, Position]) -> list[Part]:
        # A time in the future is one of a wrong clock, not of a file that is being written.
        complete = abs(time.time() - file.modified) >= self.options.quiet
        options = self.options
        goes = options.finished != "keep"
        part = FilePart(file, options.format, complete, goes, options.origin_headers)
        position = positions.get(key_of(part.place))
        if part.has_more(position):
            return [part]
        if complete and (position is not None or file.size == 0):
            self._finish(file)
        return []

    def _finish(self, file: WatchedFile) -> None:
        """Move or delete a file, if its name still leads to it, as it was listed."""
        opened = file.open()
        if opened is None or self.options.finished == "keep":
            return
        with opened:
            if not opened.is_as_listed():
                return
        if self.options.finished == "delete":
            Path(file.path).unlink(missing_ok=True)
        elif self.options.finished_folder is not None:
            target = Path(self.options.finished_folder)
            target.mkdir(parents=True, exist_ok=True)
            shutil.move(file.path, _free(target, Path(file.path).name))


def _free(folder: Path, name: str) -> Path:
    """Return a name that no file in the folder has: files of one name on different days are all kept."""
    names = chain([name], (f"{name}.{number}" for number in count(1)))
    return next(folder / each for each in names if not (folder / each).exists())


@dataclass(frozen=True)
class FilePart(Part):
    """One file."""

    file: WatchedFile
    format: str
    complete: bool
    # Whether files go when they are finished: one that is found later in the same place is another.
    goes: bool = False
    # Whether records say of which file they are.
    origin_headers: bool = False

    @property
    def place(self) -> Place:
        """Return its identity."""
        return {"inode": self.file.inode}

    @property
    def names(self) -> Mapping[str, str]:
        """Return its name, without what comes after the first dot."""
        return topic_names_of(self.file.path)

    @property
    def grows(self) -> bool:
        """Return whether it is read while it grows."""
        return self.format in GROWING and self.file.packing is None

    def has_more(self, position: Position | None) -> bool:
        """Return whether there is anything after a position, without reading much."""
        if not self.grows and not self.complete:
            return False
        opened = self.file.open()
        if opened is None:
            return False
        with opened:
            at = self._start(opened, position)
            if self.grows:
                return self.file.size > at and (self.complete or _has_line(opened, at))
            return not (at and position and position.get("done"))

    def _start(self, opened: OpenedFile, position: Position | None) -> int:
        return opened.start(position, self.format, grows=self.grows, goes=self.goes)

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Read on, if it is still there; what it has by now is read, too."""
        opened = self.file.open()
        if opened is None:
            yield NothingToRead()
            return
        with opened:
            opened.complete = self.complete and opened.is_as_listed()
            at = self._start(opened, position)
            origin = self.file.shown_path if self.origin_headers else None
            yield FileReader(opened, self.format, at, grows=self.grows, origin=origin)


def _has_line(file: OpenedFile, at: int) -> bool:
    with file.stream() as stream:
        stream.seek(at)
        data = stream.read(_LOOKED_AT)
    return b"\n" in data or len(data) == _LOOKED_AT
