"""How many records a poll gives, and how long it waits: what callers may say."""

from __future__ import annotations

import time
from math import inf

from penstock.errors import ConfigError


def at_least_one(most: int) -> int:
    """The size of a batch.

    >>> at_least_one(0)
    Traceback (most recent call last):
    penstock.errors.ConfigError: a batch of 0 records is not allowed; allowed: 1 or more
    """
    if most < 1:
        raise ConfigError(f"a batch of {most} records is not allowed; allowed: 1 or more")
    return most


def deadline_of(timeout_ms: float) -> float:
    """When a wait that begins now ends; a negative time-out is for ever.

    >>> deadline_of(-1)
    inf
    """
    return inf if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000
