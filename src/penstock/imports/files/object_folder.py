"""A folder of an object store: which objects have something to read, what becomes of finished ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, count
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, TransientError
from penstock.imports.files.file_reader import FileReader, NothingToRead, topic_names_of
from penstock.imports.files.object_store import ObjectStore, StoredObject
from penstock.imports.files.stored_object import OpenedObject, has_content_of, start_of
from penstock.pipeline.importing import Part, Place, Position, Reader, System, key_of

if TYPE_CHECKING:
    from penstock.imports.files.files_import import FilesImport


class ObjectFolder(System):
    """A folder of a store; each round lists it once."""

    def __init__(self, options: FilesImport) -> None:
        self._options = options
        self._store = ObjectStore(options.folder, options.storage_options)
        self._was_listed = False

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the objects that have something to read; move or delete those that are finished."""
        parts: list[Part] = []
        for listed in self._listed():
            hidden = listed.name.startswith(".")
            if hidden or not fnmatchcase(listed.name, self._options.pattern):
                continue
            options = self._options
            goes = options.finished != "keep"
            part = ObjectPart(self._store, listed, options.format, goes, options.origin_headers)
            if part.has_more(positions.get(key_of(part.place))):
                parts += [part] if self._is_complete(listed) else []
            elif goes:
                self._finish(listed)
        return parts

    def _listed(self) -> list[StoredObject]:
        """List the folder; what was right at the start is waited for if it is wrong later."""
        try:
            found = self._store.listed(recursive=self._options.recursive)
        except ConfigError as error:
            if self._was_listed:
                raise TransientError(str(error)) from error
            raise
        self._was_listed = True
        return found

    def _is_complete(self, listed: StoredObject) -> bool:
        """Return whether nothing is written to it any more: known, or because it has been quiet."""
        if listed.is_whole or listed.modified is None:
            return True
        return abs(time.time() - listed.modified) >= self._options.quiet

    def _finish(self, listed: StoredObject) -> None:
        """Move or delete an object, if its content is still the one that was read."""
        if not OpenedObject(self._store, listed).is_as_listed():
            return
        if self._options.finished == "move":
            self._copy(listed)
        self._store.delete(listed.path)

    def _copy(self, listed: StoredObject) -> None:
        """Copy it to a free name, unless an interrupted move has left a copy of it already."""
        options = self._options
        _, root = self._store.connect()
        aim = ObjectStore(options.finished_folder or "", options.storage_options)
        _, folder = aim.connect()
        wanted = f"{folder.rstrip('/')}/{listed.path.removeprefix(root).lstrip('/')}"
        for target in chain([wanted], (f"{wanted}.{number}" for number in count(1))):
            found = aim.now(target)
            if found is None:
                self._store.copy(listed.path, target)
                return
            if _is_copy(found, listed):
                return


def _is_copy(found: StoredObject, listed: StoredObject) -> bool:
    """Return whether it has the same content, and is not older: copied from it."""
    if (found.size, found.is_whole) != (listed.size, listed.is_whole):
        return False
    same = found.version == listed.version or not found.is_whole
    return same and (found.modified or 0) >= (listed.modified or 0)


@dataclass(frozen=True)
class ObjectPart(Part):
    """One object, as it was listed."""

    store: ObjectStore
    listed: StoredObject
    format: str
    # Whether objects go when they are finished.
    goes: bool = False
    # Whether records say of which object they are.
    origin_headers: bool = False

    @property
    def place(self) -> Place:
        """Return its path: another content of it is known by its version, in the position."""
        return {"object": self.listed.path}

    @property
    def names(self) -> Mapping[str, str]:
        """Return its name, without what comes after the first dot."""
        return topic_names_of(self.listed.path)

    def has_more(self, position: Position | None) -> bool:
        """Return whether there is anything after a position; nothing is asked for."""
        if position is None or not position.get("done"):
            return True
        return not has_content_of(self.listed, position, goes=self.goes)

    def _start(self, position: Position | None) -> int:
        return start_of(self.listed, position, self.format, goes=self.goes)

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Read on, if it still has this content."""
        opened = OpenedObject(self.store, self.listed)
        if opened.is_as_listed():
            origin = self.listed.path if self.origin_headers else None
            at = self._start(position)
            yield FileReader(opened, self.format, at, grows=False, origin=origin)
        else:
            yield NothingToRead()
