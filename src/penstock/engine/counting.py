"""Counts rows and bad records in the very pass that writes them, so that counting costs nothing more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from penstock.errors import PipelineFailedError
from penstock.pipeline import FAILED

if TYPE_CHECKING:
    from pyspark.sql import Column, Observation
    from pyspark.sql.streaming.query import StreamingQuery

Query = Callable[[], "StreamingQuery"]
"""Gives Spark's query, whose plan knows what passed through it in the batch that is under way."""

_DEADLINE = 60.0


@dataclass(frozen=True)
class Failures:
    """How many records of a batch failed, and a fingerprint over them."""

    count: int = 0
    fingerprint: int = 0


def failures_in() -> list[Column]:
    """Return the aggregates from which `Failures` is made."""
    return [
        f.count(FAILED).alias("failed"),
        f.coalesce(f.sum(FAILED), f.lit(0)).alias("fingerprint"),
    ]


def counted(seen: Observation) -> dict[str, Any]:
    """Return what was counted.

    Spark tells it only after an action it knows; a sink that writes in another way would make us wait
    for ever, so there is a deadline.
    """
    found: list[dict[str, Any]] = []
    waiting = Thread(target=lambda: found.append(seen.get), daemon=True)
    waiting.start()
    waiting.join(_DEADLINE)
    if not found:
        raise PipelineFailedError(
            "the sink returned without writing its rows in one Spark action, so they cannot be counted"
        )
    return found[0]
