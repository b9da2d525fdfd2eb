"""What jobs say about themselves, as one table: the plugin's columns, then ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.jobs.store import Kept

if TYPE_CHECKING:
    import pandas as pd


def table_of(jobs: Iterable[Kept]) -> pd.DataFrame:
    """Return one row for each job."""
    import pandas as pd  # noqa: PLC0415

    columns = {
        "subscriptionId": "string", "user": "string", "actionName": "string",
        "createTimestamp": "datetime64[ms]", "processedMsgCount": "int64",
        "failedMsgCount": "int64", "lastErrMsg": "string",
        "lastFailedTimestamp": "datetime64[ms]", "msgAsTable": "bool", "batchSize": "int64",
        "throttle": "float64", "autoCommit": "bool", "state": "string", "lag": "int64",
        "rows": "int64", "rowsPerSecond": "float64", "lastBatchTimestamp": "datetime64[ms]",
    }  # fmt: skip
    rows = [_row(job) for job in jobs]
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def _row(job: Kept) -> dict[str, Any]:
    options = job.options
    return {
        "subscriptionId": job.id,
        "user": job.user,
        "actionName": job.name,
        "createTimestamp": _moment(job.created),
        "processedMsgCount": job.records - job.failed,
        "failedMsgCount": job.failed,
        "lastErrMsg": job.last_error or "",
        "lastFailedTimestamp": _moment(job.last_failed),
        "msgAsTable": bool(options["as_table"]),
        "batchSize": options["batch_size"] if options["batch_size"] > 1 else 0,
        "throttle": options["throttle"],
        "autoCommit": options["auto_commit"],
        "state": job.shown_state,
        "lag": job.lag,
        "rows": job.rows,
        "rowsPerSecond": job.rate,
        "lastBatchTimestamp": _moment(job.last_batch),
    }


def _moment(seconds: float | None) -> Any:
    import pandas as pd  # noqa: PLC0415

    return pd.NaT if seconds is None else pd.Timestamp(seconds, unit="s").floor("ms")
