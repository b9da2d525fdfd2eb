"""Which files are compressed, and how: their names say so."""

from __future__ import annotations

from pathlib import PurePosixPath

_PACKED = {".gz": "gzip", ".zst": "zstd"}


def packing_of(path: str) -> str | None:
    """Return how a file is compressed; None for one that is not.

    >>> packing_of("a/b.log.GZ"), packing_of("a.log")
    ('gzip', None)
    """
    return _PACKED.get(PurePosixPath(path).suffix.lower())
