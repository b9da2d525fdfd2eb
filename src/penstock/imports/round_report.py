"""The rounds of an import, reported as batches: numbered, none left out while the store is away."""

from __future__ import annotations

import time
from dataclasses import replace

from penstock.config.logs import event_logger
from penstock.engine import Done
from penstock.engine.loop import OnBatch
from penstock.engine.resumption import epochs_of
from penstock.errors import TransientError
from penstock.pipeline import Mark

log = event_logger(__name__)


class RoundReport:
    """Calls `on_batch` for rounds; those that it could not take are added to the next ones.

    >>> taken = []
    >>> report = RoundReport(taken.append, token=7)
    >>> for records in (5, 2):
    ...     report.add(Done(Mark(0, 0, 0), records, records, failed=0, seconds=1.0))
    >>> [(done.mark.batch, done.records) for done in taken]
    [(0, 5), (1, 2)]
    """

    def __init__(self, on_batch: OnBatch | None, token: int | None) -> None:
        self._on_batch = on_batch
        self._epoch = int(time.time()) if token is None else epochs_of(token).start
        self._next = 0
        self._waiting: Done | None = None

    def add(self, done: Done) -> None:
        """Report a round. It is committed already: a store that is away does not fail the import."""
        if self._on_batch is None:
            return
        both = replace(done, mark=Mark(self._epoch, self._next, 0))
        if (waiting := self._waiting) is not None:
            both = replace(
                both,
                records=done.records + waiting.records,
                rows=done.rows + waiting.rows,
                failed=done.failed + waiting.failed,
                seconds=done.seconds + waiting.seconds,
                error=done.error or waiting.error,
            )
        self._waiting = both
        try:
            self._on_batch(both)
        except TransientError as error:
            log.warning("round_not_counted", reason=str(error))  # it is counted with the next one
        else:
            self._waiting = None
            self._next += 1
