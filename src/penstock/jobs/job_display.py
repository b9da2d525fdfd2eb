"""Displays of jobs: one line, a live table, a small page in a notebook."""

from __future__ import annotations

import html
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.jobs.job_store import JobRow

if TYPE_CHECKING:
    from penstock.jobs.job import Job

_COLOURS = {"RUNNING": "green", "FAILED": "bold red", "STOPPED": "dim"}
_HTML = {"RUNNING": "#1a7f37", "FAILED": "#cf222e", "STOPPED": "#6e7781"}


def as_line(job: JobRow) -> str:
    """Return one line about a job."""
    return (
        f"{job.name} {job.shown_state}: {job.records - job.failed:,} processed, "
        f"{job.failed:,} failed, lag {job.lag:,}, {job.rate:,.0f} rows/s"
    )


def as_table(jobs: Sequence[JobRow]) -> RenderableType:
    """Return a table for a terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("job", "state", "processed", "failed", "lag", "rows", "rows/s", "last batch"):
        table.add_column(column, justify="left" if column in ("job", "state") else "right")
    for job in jobs:
        state = Text(job.shown_state, style=_COLOURS.get(job.shown_state, "yellow"))
        processed, failed, *others = _cells(job).values()
        failures = Text(failed, style="red" if job.failed else "")
        table.add_row(job.name, state, processed, failures, *others)
    errors = [
        f"{job.name}: last error at {_clock(job.last_failed)}: {printable(mask(job.last_error))}"
        for job in jobs
        if job.last_error
    ]
    return Group(table, *(Text(line, style="red") for line in errors))


def as_html(job: JobRow) -> str:
    """Return a small page for a notebook: state, counters, rate, last error."""
    colour = _HTML.get(job.shown_state, "#9a6700")
    cells = _cells(job)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in cells)
    body = "".join(f"<td>{html.escape(value)}</td>" for value in cells.values())
    error = ""
    if job.last_error:
        text = f"{_clock(job.last_failed)} {html.escape(mask(job.last_error))}"
        error = f"<div style='color:#cf222e'>{text}</div>"
    return (
        f"<div><b>{html.escape(job.name)}</b> <span style='color:{colour}'>{job.shown_state}</span>"
        f"<table><tr>{head}</tr><tr>{body}</tr></table>{error}</div>"
    )


def _cells(job: JobRow) -> dict[str, str]:
    return {
        "processed": f"{job.records - job.failed:,}",
        "failed": f"{job.failed:,}",
        "lag": f"{job.lag:,}",
        "rows": f"{job.rows:,}",
        "rows/s": f"{job.rate:,.0f}",
        "last batch": _clock(job.last_batch),
    }


def watch(jobs: Sequence[Job], every: float, console: Console | None = None) -> None:
    """Show jobs until all have ended or Ctrl-C is pressed."""
    try:
        with Live(_now(jobs), console=console, refresh_per_second=4) as live:
            while any(not job.wait(0) for job in jobs):
                live.update(_now(jobs))
                time.sleep(every)
            live.update(_now(jobs))
    except KeyboardInterrupt:
        return


def _now(jobs: Sequence[Job]) -> RenderableType:
    return as_table([job.now() for job in jobs])


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
