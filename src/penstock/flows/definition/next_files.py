"""Files that a definition names without a folder: next to it, or in the working directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


@contextmanager
def next_to(definition: Path) -> Iterator[None]:
    """Find the files of what is read in the block next to this one."""
    token = _folder.set(definition.resolve().parent)
    try:
        yield
    finally:
        _folder.reset(token)


def named_file(given: str) -> Path:
    """Return the absolute path of a file that a definition names."""
    folder = _folder.get()
    own = folder / given if folder is not None else Path(given)
    return (own if own.exists() else Path(given)).absolute()
