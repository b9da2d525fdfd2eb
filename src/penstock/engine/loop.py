"""What runs the records of one attempt, in batches or in real time, as the attempt sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Protocol

from penstock.engine.phases import phase
from penstock.engine.progress import Done, Progress
from penstock.engine.restart_reason import JavaDiedError
from penstock.errors import PenstockError
from penstock.pipeline import Mark

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

OnBatch = Callable[[Done], None]
"""Called after each batch, before Spark notes it as done: if it raises, the batch is run again."""

BeforeBatch = Callable[[], None]
"""Called before anything of a batch is written: if it raises, nothing is."""


GoesElsewhere = Callable[[], bool]
"""Asked after Java died: whether another process takes the run over, so that it ends in this one."""


class BatchTrace(Protocol):
    """Receives each batch at its end; it must not raise."""

    def done(self, done: Done) -> None:
        """Receive a batch that was written."""
        ...

    def failed(self, mark: Mark, seconds: float, error: BaseException) -> None:
        """Receive a batch that failed; it is run again, or the pipeline fails."""
        ...


@dataclass(frozen=True)
class Hooks:
    """Functions of the caller that are called at each batch, and what traces them."""

    on_batch: OnBatch | None = None
    before_batch: BeforeBatch | None = None
    trace: BatchTrace | None = None
    goes_elsewhere: GoesElsewhere | None = None

    def ends_with(self, error: PenstockError) -> bool:
        """Return whether a run that had worked ends with this error, although it could be restarted."""
        died = isinstance(error, JavaDiedError)
        return died and self.goes_elsewhere is not None and self.goes_elsewhere()

    def done(self, done: Done) -> None:
        """Report a batch that was written."""
        if self.on_batch:
            with phase("report"):
                self.on_batch(done)
        if self.trace:
            self.trace.done(done)

    def failed(self, mark: Mark, began: float, error: BaseException) -> None:
        """Report a batch that began at this time of the monotonic clock and failed."""
        if self.trace:
            self.trace.failed(mark, time.monotonic() - began, error)


class LaunchedQuery:
    """Spark's query, from the moment on that it is launched."""

    def __init__(self) -> None:
        self._launched = Event()
        self._query: StreamingQuery

    def set(self, query: StreamingQuery) -> None:
        """Store the query that Spark returned."""
        self._query = query
        self._launched.set()

    @property
    def current(self) -> StreamingQuery | None:
        """Return the query; None before it is launched."""
        return self._query if self._launched.is_set() else None

    def __call__(self) -> StreamingQuery:
        """Return the query; wait for it if its first batch begins before Spark has returned it."""
        self._launched.wait()
        return self._query


class Loop(Protocol):
    """Takes the records of one epoch to the sink and stores the progress."""

    @property
    def progress(self) -> Progress:
        """Return a snapshot of the counts so far."""
        ...

    @property
    def error(self) -> Exception | None:
        """Return the exception that ended it, if Python has it: Spark has only the text."""
        ...

    @property
    def last_id(self) -> int:
        """Return the last completed batch, which Spark may not have noted yet; -1 if there is none."""
        ...

    @property
    def ended_between(self) -> bool:
        """Return whether it ended between two batches on request."""
        ...

    @property
    def recreated(self) -> set[str]:
        """Return the topics that were recreated: they are read from their beginning, in a new epoch."""
        ...

    def check_topics(self) -> bool:
        """Compare the topics with those of the epoch; return whether a new epoch must begin.

        Raises
        ------
        DataLossError
            When records were removed that must not be skipped.
        """
        ...

    def stop_soon(self) -> None:
        """Let no other batch begin."""
        ...

    def stop(self) -> None:
        """Let no other batch begin, and wait until the running one is done."""
        ...

    def join(self) -> None:
        """Wait, after the query's end, until its last batch is committed."""
        ...
