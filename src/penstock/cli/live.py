"""Shows running pipelines: a table that moves on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.cli.output import messages, say
from penstock.config.secrets import mask
from penstock.engine import Progress, Running, State

_COLOURS = {
    State.STARTING: "yellow",
    State.RUNNING: "green",
    State.RETRYING: "yellow",
    State.RESTARTING: "yellow",
    State.STOPPING: "yellow",
    State.STOPPED: "dim",
    State.FAILED: "bold red",
}
_LINE_EVERY = 5.0


def watch(running: Running, until: Callable[[], bool] = lambda: False) -> None:
    """Show a pipeline until it ends or `until` says so."""
    console = messages()
    if not console.is_terminal:
        return _lines(running, until)
    with Live(_view(running.progress()), console=console, refresh_per_second=4) as live:
        while not (running.wait(0.5) or until()):
            live.update(_view(running.progress()))
        live.update(_view(running.progress()))
    return None


def summary(progress: Progress) -> str:
    """Return one line about a pipeline.

    >>> summary(Progress("trades", rows=2000))
    'trades STARTING: 0 batches, 2,000 rows, 0 rows/s, lag 0, 0 failed'
    """
    return (
        f"{progress.pipeline} {progress.state.value}: {progress.batches:,} batches, "
        f"{progress.rows:,} rows, {progress.rows_per_second:,.0f} rows/s, "
        f"lag {progress.total_lag:,}, {progress.failed:,} failed" + _trouble(progress)
    )


def _trouble(progress: Progress) -> str:
    """What a line adds when all is not well: records lost, restarts, and the reason while it waits."""
    lost = f", {progress.lost:,} lost" if progress.lost else ""
    restarts = f", {progress.restarts} restarts" if progress.restarts else ""
    waiting = progress.state in (State.RETRYING, State.RESTARTING)
    return lost + restarts + (f"; {mask(progress.last_error or '')}" if waiting else "")


def _lines(running: Running, until: Callable[[], bool]) -> None:
    shown = 0.0
    while not (running.wait(0.5) or until()):
        if time.monotonic() - shown >= _LINE_EVERY:
            shown = time.monotonic()
            say(summary(running.progress()))


def _view(progress: Progress) -> RenderableType:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in (
        "pipeline",
        "state",
        "batches",
        "rows",
        "rows/s",
        "lag",
        "failed",
        "lost",
        "last batch",
    ):
        table.add_column(column, justify="left" if column in ("pipeline", "state") else "right")
    batch = progress.last_batch_seconds
    table.add_row(
        progress.pipeline,
        Text(progress.state.value, style=_COLOURS[progress.state]),
        f"{progress.batches:,}",
        f"{progress.rows:,}",
        f"{progress.rows_per_second:,.0f}",
        f"{progress.total_lag:,}",
        Text(f"{progress.failed:,}", style="red" if progress.failed else ""),
        Text(f"{progress.lost:,}", style="red" if progress.lost else ""),
        f"{batch:.2f} s" if batch is not None else "",
    )
    if not progress.last_error:
        return table
    return Group(table, Text(f"last error: {mask(progress.last_error)}", style="red"))
