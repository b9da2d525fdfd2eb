"""Progress of the first download of jars; silent when all of them are cached."""

from __future__ import annotations

from collections.abc import Iterable

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from penstock.cli.output import messages
from penstock.embedded import jars
from penstock.embedded.jars_lock import artifacts_of


def fetch_shown(groups: Iterable[str]) -> None:
    """Download the missing jars of these groups, with a progress bar for each."""
    wanted = [group for group in groups if jars.missing(artifacts_of(group))]
    if not wanted:
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=messages()) as bar:

        def show(_group: str, done: int, total: int) -> None:
            bar.update(bar.task_ids[-1], completed=done, total=total)

        for group in wanted:
            bar.add_task(f"downloading jars: {group}", total=None)
            jars.fetch(group, show)
