"""Jobs: a topic, through a parser, into a table, in the background; they survive restarts.

The names are loaded when they are first used: listing stored jobs needs no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lazy_imports import loads_late

if TYPE_CHECKING:
    from penstock.jobs.job import Job as Job
    from penstock.jobs.job_functions import cancel as cancel
    from penstock.jobs.job_functions import create_job as create_job
    from penstock.jobs.job_functions import find_job as find_job
    from penstock.jobs.job_functions import job_consumer as job_consumer
    from penstock.jobs.job_functions import job_stats as job_stats
    from penstock.jobs.job_functions import jobs as jobs
    from penstock.jobs.job_functions import resume_jobs as resume_jobs
    from penstock.jobs.job_store import Store as Store
    from penstock.jobs.job_table import Table as Table

_PLACES = {
    "Job": "job",
    "Store": "job_store",
    "Table": "job_table",
    "cancel": "job_functions",
    "create_job": "job_functions",
    "find_job": "job_functions",
    "job_consumer": "job_functions",
    "job_stats": "job_functions",
    "jobs": "job_functions",
    "resume_jobs": "job_functions",
}
__all__ = [*_PLACES]  # noqa: PLE0604
__getattr__ = loads_late(__name__, _PLACES)
