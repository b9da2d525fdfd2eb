"""Opens parts for a task, the next ones ahead: connecting takes longer than reading a small part."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import Self

from penstock.errors import FencedError, TerminalError
from penstock.imports.positions import TOPIC, Known, Positions
from penstock.kafka.producing.record_transaction import Transaction

if TYPE_CHECKING:
    from penstock.imports.part_task import Errand

# A part that is slow to read may take this long for one transaction, if it does not say that it needs
# longer (`Part.producer`). Where a task was killed, the next
# one of its part ends its transaction at once.
_SETTINGS = {
    "transaction.timeout.ms": 120_000,
    "message.timeout.ms": 60_000,
    # No record is seen before the commit, which does not wait; larger batches are less work for brokers.
    "linger.ms": 100,
    # For as long, records without a key go to one partition: fuller batches, and fewer at a time.
    "sticky.partitioning.linger.ms": 100,
}
# How long the commit of another part may take before its task counts as killed, in seconds.
_SLOW = 10.0
# How many parts are opened while one is read.
_AHEAD = 3


class Opened(NamedTuple):
    """The producer of a part, which has fenced the one before it, and what was read after that."""

    transaction: Transaction
    known: Known


def open_part(errand: Errand) -> Opened:
    """Connect, fence the task before this one, then read the position."""
    settings = {**_SETTINGS, **errand.limits, **errand.part.producer}
    with ExitStack() as stack:
        transaction = Transaction(errand.connection, errand.transaction, settings)
        stack.push(transaction)
        # Only now: a transaction of an earlier task of this part is resolved, and none can follow.
        with Positions(errand.connection) as positions:
            known = positions.read(errand.name, errand.known, errand.end_open, suspect=_SLOW)
        require_claim(errand.name, errand.claim, known.claim)
        stack.pop_all()
    return Opened(transaction, known)


class OpenedAhead:
    """Parts in their order, of which the next few are being opened; those not taken are closed."""

    def __init__(self, errands: Iterable[Errand]) -> None:
        self._left = iter(errands)
        self._pool = ThreadPoolExecutor(_AHEAD, "open-part")
        self._opening: deque[Future[Opened]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._opening:
            # Why one could not be opened is found again, and reported, when it has its turn.
            if not each.cancel() and each.exception() is None:
                each.result().transaction.__exit__()
        self._pool.shutdown()

    def next(self) -> Opened:
        """Return the next part, when it is open."""
        while len(self._opening) <= _AHEAD and (errand := next(self._left, None)):
            self._opening.append(self._pool.submit(open_part, errand))
        return self._opening.popleft().result()


def require_claim(name: str, own: int, found: int) -> None:
    """Raise where another process has taken the import over, or its positions are gone."""
    if found > own:
        raise FencedError(
            f"the import {name!r} was started by another process, and this one ends: only one may "
            "read, or records would be imported twice"
        )
    if found < own:
        raise TerminalError(
            f"the positions of {name!r} are gone from the topic {TOPIC!r}, which was deleted or emptied "
            "while the import ran; started again, it would begin from the start"
        )
