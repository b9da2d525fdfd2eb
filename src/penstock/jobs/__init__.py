"""Jobs: a topic, through a parser, into a table, in the background; kept over restarts."""

from penstock.jobs.creating import (
    cancel,
    create_job,
    find_job,
    job_consumer,
    job_stats,
    jobs,
    resume_jobs,
)
from penstock.jobs.job import Job
from penstock.jobs.store import Store
from penstock.jobs.table import Table

__all__ = [
    "Job",
    "Store",
    "Table",
    "cancel",
    "create_job",
    "find_job",
    "job_consumer",
    "job_stats",
    "jobs",
    "resume_jobs",
]
