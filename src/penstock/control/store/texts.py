"""Texts of others, as errors are, in a form that both databases store."""

from __future__ import annotations

from penstock.config.secrets import mask

_LONGEST = 10_000


def storable(text: str) -> str:
    """Return a text without secrets, NUL and lone surrogates, and no longer than is useful.

    >>> storable("no file caf\\udce9 below /data")
    'no file caf\\\\udce9 below /data'
    """
    shown = mask(text)[:_LONGEST].replace("\x00", "")
    return shown.encode("utf-8", "backslashreplace").decode()
