"""The plugin's background jobs, as Penstock's jobs: stored, exactly-once, with dead letters.

Spark is imported with the first job: a script that only produces and polls does not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.compat.dolphindb.dolphindb_arguments import checked, refusal
from penstock.errors import ConfigError, PenstockError
from penstock.formats.format_values import kind
from penstock.kafka import Consumer
from penstock.kafka.partitions import whole

if TYPE_CHECKING:
    from pandas import DataFrame

    from penstock.jobs import Job

_COLUMNS = [
    "subscriptionId", "user", "actionName", "createTimestamp", "processedMsgCount",
    "failedMsgCount", "lastErrMsg", "lastFailedTimestamp", "msgAsTable", "batchSize", "throttle",
    "autoCommit",
]  # fmt: skip


def _check_table(name: str, given: Any) -> None:
    from penstock.jobs import Table  # noqa: PLC0415

    try:
        Table.of(given)
    except PenstockError as error:
        raise ConfigError(f"{name}: {error}") from error


def _check_parser(name: str, given: Any) -> None:
    from penstock.decode.kernels.parser import accepted_arguments  # noqa: PLC0415
    from penstock.pipeline import Decode  # noqa: PLC0415

    allowed = "a function, 'module:function', or the columns of the JSON"
    if isinstance(given, str | Mapping | Decode) and given:
        return
    if not callable(given):
        raise refusal(name, given, allowed)
    try:
        accepted_arguments(given, "the function")
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{name} {kind(given)} is not allowed: {error}") from None


def _check_job(name: str, given: Any) -> None:
    from penstock.jobs import Job  # noqa: PLC0415

    is_number = whole(given) is not None
    if not is_number and not (isinstance(given, Job | str) and given):
        raise refusal(name, given, "what createSubJob returned, an actionName or a subscriptionId")


@checked(table=_check_table, parser=_check_parser)
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
    from penstock import jobs  # noqa: PLC0415

    return jobs.create_job(
        consumer,
        table,
        parser,
        actionName,
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


@checked(handle=_check_job)
def cancelSubJob(handle: Job | str | int) -> None:
    """End a job by its handle, its actionName or its subscriptionId; a name wins over an id."""
    from penstock import jobs  # noqa: PLC0415

    jobs.cancel(handle)


@checked(handle=_check_job)
def getSubJobConsumer(handle: Job | str | int) -> Consumer:
    """Return the consumer of a job."""
    from penstock import jobs  # noqa: PLC0415

    return jobs.job_consumer(handle)
