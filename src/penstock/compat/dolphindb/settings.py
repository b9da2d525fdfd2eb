"""The plugin's global settings: how large a value may be, for every producer that is made here."""

from __future__ import annotations

from typing import Any

from penstock.errors import ConfigError
from penstock.kafka.places import whole
from penstock.kafka.producing.splitting import Sizes

SIZES = Sizes()
"""Shared by all producers of this module, as in the plugin."""


def getBufferSize() -> int:
    """The most bytes of one value; 900 000 at first.

    >>> getBufferSize()
    900000
    """
    return SIZES.buffer


def setBufferSize(size: int) -> None:
    """Set the most bytes of one value. A message size that would be larger goes down with it."""
    wanted = _bytes(size, "buffer")
    SIZES.message = min(SIZES.message, wanted)
    SIZES.buffer = wanted


def getMessageSize() -> int:
    """The most bytes of a message before its vector or table goes out in pieces; 10 000 at first.

    >>> getMessageSize()
    10000
    """
    return SIZES.message


def setMessageSize(size: int) -> None:
    """Set the most bytes of a message, at most the buffer size."""
    SIZES.message = _bytes(size, "message")


def _bytes(size: Any, what: str) -> int:
    found = whole(size)
    if found is None or found < 1:
        raise ConfigError(
            f"{what} size {size!r} is not allowed; allowed: bytes, a whole number from 1 on"
        )
    return found
