"""What a running pipeline says about itself: state, counts, rates, lag."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from enum import Enum

from penstock.engine.topic_watcher import Loss, counted
from penstock.pipeline import Mark, Offsets


class State(str, Enum):
    """Where a pipeline is in its life."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"  # another system is away: the same batch is tried until it is back
    RESTARTING = "RESTARTING"  # it failed and is started again, a limited number of times
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


@dataclass(frozen=True)
class Done:
    """What one batch gave. The same batch, run again after a kill, has the same mark.

    A process that takes the pipeline over may run it again under a later number of the same epoch;
    `earlier` has the others.
    """

    mark: Mark
    records: int
    rows: int
    failed: int
    seconds: float
    position: Offsets = field(default_factory=dict)
    error: str | None = None
    # How many records Kafka removed before they were read.
    lost: int = 0
    earlier: frozenset[int] = frozenset()

    @property
    def rows_per_second(self) -> float:
        """Return the rate of this batch."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Progress:
    """A snapshot of a pipeline."""

    pipeline: str
    state: State = State.STARTING
    batches: int = 0
    # How many parts were written of batches that were divided, because a record in them was refused.
    parts: int = 0
    records: int = 0
    rows: int = 0
    failed: int = 0
    lost: int = 0
    rows_per_second: float = 0.0
    last_batch_seconds: float | None = None
    last_batch_at: float | None = None
    restarts: int = 0
    last_error: str | None = None
    position: Offsets = field(default_factory=dict)
    lag: dict[str, int] = field(default_factory=dict)
    # How often it was started again, by the values of `RestartReason`.
    restart_reasons: dict[str, int] = field(default_factory=dict)

    @property
    def has_written(self) -> bool:
        """Return whether anything was written: a batch, or a part of a divided one.

        >>> Progress("p").has_written, Progress("p", parts=1).has_written
        (False, True)
        """
        return bool(self.batches or self.parts)

    @property
    def total_lag(self) -> int:
        """Return the number of records that are in Kafka and not yet in the sink."""
        return sum(self.lag.values())

    def after_batch(self, done: Done) -> Progress:
        """Return the snapshot after one more batch.

        >>> done = Done(Mark(1, 0, 0), records=10, rows=9, failed=1, seconds=2.0)
        >>> Progress("p").after_batch(done).rows_per_second
        4.5
        """
        return replace(
            self,
            batches=self.batches + 1,
            records=self.records + done.records,
            rows=self.rows + done.rows,
            failed=self.failed + done.failed,
            lost=self.lost + done.lost,
            rows_per_second=done.rows_per_second,
            last_batch_seconds=done.seconds,
            last_batch_at=time.time(),
            position=done.position,
            last_error=done.error or self.last_error,
        )

    def without(self, losses: list[Loss]) -> Progress:
        """Return the snapshot after records were removed from Kafka unread.

        >>> Progress("p").without([Loss(("t", 0), 5, 8, 3)]).lost
        3
        """
        lost, loss = counted(losses)
        return replace(self, lost=self.lost + lost, last_error=loss or self.last_error)

    def behind(self, ends: Offsets) -> Progress:
        """Return the snapshot with the lag that follows from the partitions' ends."""
        lag = {
            f"{topic}-{partition}": max(0, end - self.position[topic, partition])
            for (topic, partition), end in ends.items()
            if (topic, partition) in self.position
        }
        return replace(self, lag=lag)
