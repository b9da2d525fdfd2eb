"""What a folder of files needs of that in which it is kept, and what a full disk means to all of them."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from py4j.protocol import Py4JJavaError

from penstock.errors import TransientError
from penstock.pipeline.java_errors import causes_of, is_disk_full

_FULL = (errno.ENOSPC, errno.EDQUOT)
DRAFT = ".draft"
"""How the name of a file ends that is not whole yet."""


class Store(Protocol):
    """What a folder of files needs; places are whole paths or URIs."""

    def entries(self, location: str) -> list[tuple[str, bool]]:
        """Return the names in a folder, and which are folders; none where there is no folder."""

    def read(self, location: str) -> str | None:
        """Return the text of a file, or None where there is none."""

    def write(self, location: str, text: str) -> None:
        """Write a whole file, or nothing."""

    def create(self, location: str, text: str) -> bool:
        """Write a file where there is none; return whether this call made it."""

    def sizes(self, location: str, pattern: str) -> dict[str, int]:
        """Return name and bytes of the files under a location that match a pattern."""

    def exists(self, location: str) -> bool:
        """Return whether there is a file or a folder."""

    def move(self, location: str, to: str) -> bool:
        """Rename a file, creating its new folder if needed; return whether it was done."""

    def remove(self, location: str) -> None:
        """Remove a file, or a folder with its contents, if it exists."""


def unglobbed(location: str) -> str:
    """Escape a location for a call that takes a pattern.

    >>> print(unglobbed("/tables/[new]"))
    /tables/\\[new\\]
    """
    return re.sub(r"([\\{}\[\]*?^])", r"\\\1", location)


@contextmanager
def room(location: str) -> Iterator[None]:
    """Raise TransientError if a disk is full: the same call works once space is freed."""
    try:
        yield
    except (OSError, Py4JJavaError) as error:
        full = (
            error.errno in _FULL if isinstance(error, OSError) else is_disk_full(causes_of(error))
        )
        if not full:
            raise
        raise TransientError(
            f"there is no space left to write {location}: free some, and it is written then"
        ) from error


def java_class(error: Py4JJavaError) -> str:
    """Return the name of the Java class of an error, without its package."""
    return str(error.java_exception.getClass().getSimpleName())
