"""How much memory one value may take: counted before it is decoded, because a few bytes can claim a lot.

A few hundred bytes of Arrow, Avro or DolphinDB's form can describe gigabytes. Every decoder counts what
a value will take, generously, and refuses it where that is more than the limit.
"""

from __future__ import annotations

import os
from functools import lru_cache

from penstock.errors import ConfigError, FormatError

VARIABLE = "PENSTOCK_MAX_DECODED_BYTES"
"""The environment variable that sets the limit, in bytes."""
DEFAULT = 256 * 2**20
SMALLEST = 2**20


def decoded_limit() -> int:
    """Return the most bytes of memory that one decoded value may take."""
    return _parsed(os.environ.get(VARIABLE, ""))


def check_size(size: float, what: str) -> None:
    """Raise `FormatError` where a value would take more memory than is allowed.

    >>> check_size(2**40, "an Arrow stream")
    Traceback (most recent call last):
    penstock.errors.FormatError: an Arrow stream takes 1099511627776 bytes when decoded; allowed are \
268435456 (set PENSTOCK_MAX_DECODED_BYTES for more)
    """
    limit = decoded_limit()
    if size > limit:
        raise FormatError(
            f"{what} takes {int(size)} bytes when decoded; allowed are {limit} "
            f"(set {VARIABLE} for more)"
        )


class Budget:
    """What is left of the limit while one value is decoded part by part."""

    __slots__ = ("_checked_at", "_what", "spent")

    def __init__(self, what: str) -> None:
        self._what = what
        self.spent = 0
        # The setting is looked up only for values that are large enough to matter.
        self._checked_at = SMALLEST

    def spend(self, size: int, part: str = "") -> None:
        """Count the bytes that the next part takes, before it is made, or raise `FormatError`."""
        self.spent += size
        if self.spent > self._checked_at:
            check_size(self.spent, f"{part}{self._what}")
            self._checked_at = decoded_limit()


@lru_cache(maxsize=8)
def _parsed(text: str) -> int:
    if not text:
        return DEFAULT
    if not text.isdecimal() or int(text) < SMALLEST:
        raise ConfigError(
            f"{VARIABLE}={text!r} is not allowed; allowed: a number of bytes, at least {SMALLEST}"
        )
    return int(text)
