"""Counts rows and bad records in the very pass that writes them, so that counting costs nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as f

from penstock.engine.topic_watcher import Loss
from penstock.errors import PipelineFailedError
from penstock.pipeline import FAILED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

_DEADLINE = 60.0


@dataclass(frozen=True)
class Failures:
    """How many records of a batch failed, and a fingerprint over them."""

    count: int = 0
    fingerprint: int = 0


class Refused(NamedTuple):
    """A record that a step or the sink refused, and why."""

    topic: str
    partition: int
    offset: int
    stage: str
    error_type: str
    error: str


@dataclass(frozen=True)
class Written:
    """What became of a batch, or of a part of it."""

    rows: int
    failures: Failures
    refused: tuple[Refused, ...] = ()
    late: int = 0
    # What Kafka had no more of it; None where the one who planned the batch has to find out.
    lost: tuple[Loss, ...] | None = None
    # One of the bad records, with its error.
    example: str | None = None

    @property
    def failed(self) -> int:
        """Return how many records are bad, for whatever reason."""
        return self.failures.count + len(self.refused) + self.late


def failures_in() -> list[Column]:
    """Return the aggregates from which `Failures` is made."""
    return [
        f.count(FAILED).alias("failed"),
        f.coalesce(f.sum(FAILED), f.lit(0)).alias("fingerprint"),
    ]


def all_rows() -> Column:
    """Return the aggregate that counts rows."""
    return f.count(f.lit(1)).alias("rows")


def counted(seen: Observation) -> dict[str, Any] | None:
    """Return the counts; None where Spark left what is counted out of its plan.

    It does so where it finds, also while it runs, that nothing can come of it: a join with an empty
    table, a filter that no row passes before a shuffle.

    Spark reports them only after an action that it knows; with a sink that writes in another way this
    would wait forever, so there is a deadline.
    """
    counts: list[dict[str, Any] | None] = []
    lost: list[Exception] = []

    def ask() -> None:
        try:
            java: Any = seen._jo
            counts.append(seen.get if java.getRow().length() else None)
        except Exception as error:  # the Java process is gone: raised where it is waited for
            lost.append(error)

    waiting = Thread(target=ask, daemon=True)
    waiting.start()
    waiting.join(_DEADLINE)
    if lost:
        raise lost[0]
    if not counts:
        raise PipelineFailedError(
            "the sink returned without writing its rows in one Spark action, so they cannot be counted"
        )
    return counts[0]


def aggregated(rows: DataFrame, aggregates: Sequence[Column]) -> dict[str, Any]:
    """Return counts by a pass of their own: those of the writing pass are not there, or not whole."""
    (counts,) = rows.agg(*aggregates).collect()
    return dict(counts.asDict())
