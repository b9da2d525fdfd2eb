"""Trying again and waiting within a time: a loop with a deadline is written here, once.

Own code and not a library's: it is two short loops, and the client's base has no dependency for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import TypeVar

T = TypeVar("T")


def retry(call: Callable[[], T], again: Callable[[Exception], float | None], *, within: float) -> T:
    """Return what `call` returns; after an error, call again when `again` allows it.

    `again` returns the seconds to wait before the next try, or None for an error that is final. The
    error is raised, too, when `within` seconds would be over before the next try.

    >>> answers = iter([0, 0, 4])
    >>> retry(lambda: 8 // next(answers), lambda error: 0.0, within=9)
    2
    """
    deadline = monotonic() + within
    while True:
        try:
            return call()
        except Exception as error:
            pause = again(error)
            if pause is None or monotonic() + pause > deadline:
                raise
        sleep(pause)


def wait_for(
    ask: Callable[[], T], accept: Callable[[T], object] = bool, *, within: float, every: float
) -> T:
    """Return the first value that is accepted, or the last one when `within` seconds are over.

    >>> values = iter([None, 0, "ready"])
    >>> wait_for(lambda: next(values), within=9, every=0)
    'ready'
    """
    deadline = monotonic() + within
    while not accept(value := ask()) and monotonic() <= deadline:
        sleep(every)
    return value


def backoff(first: float, tries: int) -> Iterator[float]:
    """Yield the pauses between tries: each about twice the last, spread over the clients of a server.

    >>> [0.5 <= pause / 2**n <= 1.5 for n, pause in enumerate(backoff(1.0, tries=3))]
    [True, True]
    """
    for number in range(tries - 1):
        yield first * 2.0**number * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
