"""The statistics of jobs as one table: the plugin's columns, then ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.jobs.job_store import JobRow

if TYPE_CHECKING:
    import pandas as pd

# The type of each column, and its value for a job.
_COLUMNS: dict[str, tuple[str, Callable[[JobRow], Any]]] = {
    "subscriptionId": ("string", lambda job: job.id),
    "user": ("string", lambda job: job.user),
    "actionName": ("string", lambda job: job.name),
    "createTimestamp": ("datetime64[ms]", lambda job: _moment(job.created)),
    "processedMsgCount": ("int64", lambda job: job.records - job.failed),
    "failedMsgCount": ("int64", lambda job: job.failed),
    "lastErrMsg": ("string", lambda job: job.last_error or ""),
    "lastFailedTimestamp": ("datetime64[ms]", lambda job: _moment(job.last_failed)),
    "msgAsTable": ("bool", lambda job: bool(job.options["as_table"])),
    "batchSize": (
        "int64",
        lambda job: job.options["batch_size"] if job.options["batch_size"] > 1 else 0,
    ),
    "throttle": ("float64", lambda job: job.options["throttle"]),
    "autoCommit": ("bool", lambda job: job.options["auto_commit"]),
    "state": ("string", lambda job: job.shown_state),
    "lag": ("int64", lambda job: job.lag),
    "rows": ("int64", lambda job: job.rows),
    "rowsPerSecond": ("float64", lambda job: job.rate),
    "lastBatchTimestamp": ("datetime64[ms]", lambda job: _moment(job.last_batch)),
}


def table_of(jobs: Iterable[JobRow]) -> pd.DataFrame:
    """Return one row for each job."""
    import pandas as pd  # noqa: PLC0415

    rows = [[value(job) for _, value in _COLUMNS.values()] for job in jobs]
    types = {name: kind for name, (kind, _) in _COLUMNS.items()}
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _moment(seconds: float | None) -> Any:
    import pandas as pd  # noqa: PLC0415

    return pd.NaT if seconds is None else pd.Timestamp(seconds, unit="s").floor("ms")
