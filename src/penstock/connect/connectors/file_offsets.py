"""Offsets of Kafka's FileStreamSource (a name, a number of bytes) as positions of a file, and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.connect.connector_class import Offsets
from penstock.errors import ConfigError
from penstock.imports.files.watched_file import OpenedFile, listed

_NAME, _POSITION = "filename", "position"
_BLOCK = 2**16


def positions_of(file: str, offsets: Offsets) -> Offsets:
    """Return positions of files by their identity; those that are already are left as they are.

    Connect keeps the offsets of files that a connector has read under an earlier configuration: next to
    that of its file they do not count.
    """
    names = {place[_NAME] for place, _ in offsets if isinstance(place.get(_NAME), str)}
    return [
        _position(file, place, offset) if _NAME in place else (place, offset)
        for place, offset in offsets
        if file not in names or place.get(_NAME, file) == file
    ]


def offsets_of(file: str, positions: Offsets) -> Offsets:
    """Return the position of the file that has the name now as Connect shows it; others as they are."""
    inode = _inode(file)
    return [
        ({_NAME: file}, {_POSITION: offset["at"]})
        if place == {"inode": inode} and offset is not None and isinstance(offset.get("at"), int)
        else (place, offset)
        for place, offset in positions
    ]


def _inode(file: str) -> int | None:
    try:
        return Path(file).stat().st_ino
    except OSError:
        return None


def _position(
    file: str, place: dict[str, Any], offset: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    if place[_NAME] != file:
        raise ConfigError(
            f"the offset is of the file {place[_NAME]!r}; this connector reads {file!r}"
        )
    if offset is None:
        with _found(file) as opened:
            return {"inode": opened.listed.inode}, None
    at = offset.get(_POSITION)
    if not isinstance(at, int) or isinstance(at, bool) or at < 0:
        raise ConfigError(f"the offset of {file} is {offset}; allowed: {{'{_POSITION}': BYTES}}")
    with _found(file) as opened:
        return {"inode": opened.listed.inode}, _at(opened, file, at)


def _found(file: str) -> OpenedFile:
    # Found as the import finds it: under its own name, in its folder.
    path = Path(file).absolute()
    for each in listed(str(path.parent), "*", recursive=False):
        if Path(each.path) == path and (opened := each.open()) is not None:
            return opened
    raise ConfigError(
        f"the file {file} does not exist on this machine; offsets of files are set by a server that "
        "reads them where the workers do"
    )


def _at(opened: OpenedFile, file: str, at: int) -> dict[str, Any]:
    size = opened.as_now().size
    if at > size:
        raise ConfigError(
            f"the offset of {file} is {at}, and the file has {size} bytes; set one within it"
        )
    return dict(opened.position(_line_start(opened, at), "lines", grows=True))


def _line_start(opened: OpenedFile, at: int) -> int:
    """Return where the line begins in which a position is.

    Connect counts characters, and goes on at as many bytes: after text that is not ASCII a position is
    within a line that was read. That line comes twice, as it does after a restart of Connect.
    """
    with opened.stream() as stream:
        for start, data in _blocks_before(stream.fileno(), at):
            if (found := data.rfind(b"\n")) >= 0:
                return start + found + 1
    return 0


def _blocks_before(descriptor: int, at: int) -> Iterator[tuple[int, bytes]]:
    while at > 0:
        start = max(0, at - _BLOCK)
        yield start, os.pread(descriptor, at - start, start)
        at = start
