"""Files on this disk."""
# ruff: noqa: D102 (what each method does is said in Store)

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from penstock.pipeline.stores import DRAFT, room

# There is no such file, or there cannot be one.
_ABSENT = (FileNotFoundError, NotADirectoryError)
# What a file system without hard links replies.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class Disk:
    """Files on this disk, by Python itself: through Java, a dozen calls for each batch add up.

    Java keeps a checksum next to each file that it writes; it is removed where the file is another.
    """

    def entries(self, location: str) -> list[tuple[str, bool]]:
        try:
            with os.scandir(location) as scanned:
                return [(entry.name, entry.is_dir()) for entry in scanned]
        except _ABSENT:
            return []

    def read(self, location: str) -> str | None:
        try:
            return Path(location).read_text(encoding="utf-8")
        except _ABSENT:
            return None

    def write(self, location: str, text: str) -> None:
        file = Path(location)
        with _drafted(location, f"{location}{DRAFT}", text) as draft:
            _checksum(file).unlink(missing_ok=True)
            draft.replace(file)

    def create(self, location: str, text: str) -> bool:
        # A name of its own: several processes may try at once. A link has the whole text, or is not made.
        with _drafted(location, f"{location}.{uuid4().hex}{DRAFT}", text) as draft:
            try:
                os.link(draft, location)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                return _created(location, text)
        return True

    def sizes(self, location: str, pattern: str) -> dict[str, int]:
        matching: dict[str, int] = {}
        for file in Path(location).glob(pattern):
            with suppress(*_ABSENT):  # gone since it was listed
                if file.is_file():
                    matching[file.relative_to(location).as_posix()] = file.stat().st_size
        return matching

    def exists(self, location: str) -> bool:
        return Path(location).exists()

    def move(self, location: str, to: str) -> bool:
        file, target = Path(location), Path(to)
        with room(to):
            target.parent.mkdir(parents=True, exist_ok=True)
            for checksum in (_checksum(file), _checksum(target)):
                checksum.unlink(missing_ok=True)
            try:
                file.replace(target)
            except FileNotFoundError:
                return False
        return True

    def remove(self, location: str) -> None:
        file = Path(location)
        if file.is_dir() and not file.is_symlink():
            with suppress(*_ABSENT):  # another process removes it, too
                shutil.rmtree(file)
            return
        for one in (_checksum(file), file):
            with suppress(*_ABSENT):
                one.unlink()


@contextmanager
def _drafted(location: str, draft: str, text: str) -> Iterator[Path]:
    """Write a text next to its location, and remove it where it did not become the file."""
    file = Path(draft)
    with room(location):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            file.write_text(text, encoding="utf-8")
            yield file
        finally:
            file.unlink(missing_ok=True)


def _created(location: str, text: str) -> bool:
    """Create a file on a file system without links: a process that dies here leaves it empty."""
    try:
        with Path(location).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def _checksum(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")
