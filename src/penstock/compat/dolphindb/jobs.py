"""The plugin's background jobs, as Penstock's jobs: kept over restarts, exact, with dead letters.

Spark is imported with the first job: a script that only sends and polls does without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.kafka import Consumer

if TYPE_CHECKING:
    from pandas import DataFrame

    from penstock.jobs import Job

_COLUMNS = [
    "subscriptionId", "user", "actionName", "createTimestamp", "processedMsgCount",
    "failedMsgCount", "lastErrMsg", "lastFailedTimestamp", "msgAsTable", "batchSize", "throttle",
    "autoCommit",
]  # fmt: skip


def createSubJob(  # noqa: PLR0917 - the plugin's own order
    consumer: Consumer,
    table: Any,
    parser: Callable[..., Any],
    actionName: str,
    throttle: float = 1.0,
    autoCommit: bool | None = None,
    msgAsTable: bool = False,
    batchSize: int = 1,
    queueDepth: int = 1_000_000,
) -> Job:
    """Stream what the consumer has subscribed to through a parser into a table, in the background.

    The parser gets value, key and topic as text, or, with `msgAsTable`, a DataFrame with the columns
    payload, key and topic; it returns a table or rows. `throttle` and `batchSize` count with `msgAsTable`
    only. While the job runs it has the consumer's subscription.
    """
    if not isinstance(consumer, Consumer):
        raise ConfigError(
            f"the first argument is a consumer, made by consumer(config); "
            f"{type(consumer).__name__} was given"
        )
    from penstock import jobs  # noqa: PLC0415

    return jobs.create_job(
        consumer,
        table,
        parser,
        str(actionName),
        float(throttle),
        autoCommit,
        bool(msgAsTable),
        int(batchSize) if msgAsTable else 0,
        int(queueDepth),
    )


def getJobStat() -> DataFrame:
    """Return a table of the jobs."""
    from penstock import jobs  # noqa: PLC0415

    return jobs.job_stats()[_COLUMNS]


def cancelSubJob(handle: Job | str | int) -> None:
    """End a job by its handle, its actionName or its subscriptionId; a name wins over an id."""
    from penstock import jobs  # noqa: PLC0415

    jobs.cancel(handle)


def getSubJobConsumer(handle: Job | str | int) -> Consumer:
    """Return the consumer of a job."""
    from penstock import jobs  # noqa: PLC0415

    return jobs.job_consumer(handle)
