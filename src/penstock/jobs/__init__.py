"""Jobs: a topic, through a parser, into a table, in the background; kept over restarts.

The names are loaded when they are first used: who only looks at what is kept needs no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.late import loads_late

if TYPE_CHECKING:
    from penstock.jobs.creating import cancel as cancel
    from penstock.jobs.creating import create_job as create_job
    from penstock.jobs.creating import find_job as find_job
    from penstock.jobs.creating import job_consumer as job_consumer
    from penstock.jobs.creating import job_stats as job_stats
    from penstock.jobs.creating import jobs as jobs
    from penstock.jobs.creating import resume_jobs as resume_jobs
    from penstock.jobs.job import Job as Job
    from penstock.jobs.store import Store as Store
    from penstock.jobs.table import Table as Table

_PLACES = {
    "Job": "job",
    "Store": "store",
    "Table": "table",
    "cancel": "creating",
    "create_job": "creating",
    "find_job": "creating",
    "job_consumer": "creating",
    "job_stats": "creating",
    "jobs": "creating",
    "resume_jobs": "creating",
}
__all__ = [*_PLACES]  # noqa: PLE0604
__getattr__ = loads_late(__name__, _PLACES)
