"""Progress of running pipelines: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.cli.output import messages, say
from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.engine import Progress, Running, State
from penstock.errors import PenstockError
from penstock.imports import ImportRunning

_COLOURS = {State.RUNNING: "green", State.STOPPED: "dim", State.FAILED: "bold red"}
_COLUMNS = ("pipeline", "state", "batches", "rows", "rows/s", "lag", "failed", "lost", "last batch")
_LINE_EVERY = 5.0


def watch(*running: Running | ImportRunning, until: Callable[[], bool] = lambda: False) -> None:
    """Show pipelines until all have ended or `until` returns true; raise the error of a failed one."""
    console = messages()
    if console.is_terminal:
        with Live(_view(running), console=console, refresh_per_second=4) as live:
            while not (_have_ended(running, 0.5) or until()):
                live.update(_view(running))
            live.update(_view(running))
    else:
        shown = 0.0
        while not (_have_ended(running, 0.5) or until()):
            if time.monotonic() - shown >= _LINE_EVERY:
                shown = time.monotonic()
                for one in running:
                    say(summary(one.progress()))
    for one in running:
        one.wait(0)


def _have_ended(running: Sequence[Running | ImportRunning], seconds: float) -> bool:
    """Wait for a running pipeline for a moment; return whether all have ended."""
    active = [one for one in running if one.is_active]
    with suppress(PenstockError):  # raised at the end, when the others have ended too
        return not active or (active[0].wait(seconds) and len(active) == 1)
    return len(active) == 1


def summary(progress: Progress) -> str:
    """Return one line about a pipeline.

    >>> summary(Progress("trades", rows=2000))
    'trades STARTING: 0 batches, 2,000 rows, 0 rows/s, lag 0, 0 failed'
    """
    line = (
        f"{progress.pipeline} {progress.state.value}: {progress.batches:,} batches, "
        f"{progress.rows:,} rows, {progress.rows_per_second:,.0f} rows/s, "
        f"lag {progress.total_lag:,}, {progress.failed:,} failed"
    )
    line += f", {progress.lost:,} lost" if progress.lost else ""
    line += f", {progress.restarts} restarts" if progress.restarts else ""
    waiting = progress.state in (State.RETRYING, State.RESTARTING, State.FAILED)
    return line + (f"; {printable(mask(progress.last_error or ''))}" if waiting else "")


def _view(running: Sequence[Running | ImportRunning]) -> RenderableType:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("pipeline", "state") else "right")
    seen = [one.progress() for one in running]
    for progress in seen:
        table.add_row(*_cells(progress))
    errors = {one.pipeline: printable(mask(one.last_error)) for one in seen if one.last_error}
    lines = [f"last error of {name}: {text}" for name, text in errors.items()]
    return Group(table, *(Text(line, style="red") for line in lines))


def _cells(progress: Progress) -> list[RenderableType]:
    batch = progress.last_batch_seconds
    return [
        progress.pipeline,
        Text(progress.state.value, style=_COLOURS.get(progress.state, "yellow")),
        f"{progress.batches:,}",
        f"{progress.rows:,}",
        f"{progress.rows_per_second:,.0f}",
        f"{progress.total_lag:,}",
        Text(f"{progress.failed:,}", style="red" if progress.failed else ""),
        Text(f"{progress.lost:,}", style="red" if progress.lost else ""),
        f"{batch:.2f} s" if batch is not None else "",
    ]
