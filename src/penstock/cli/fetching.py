"""Shows how far the first fetch of jars is; says nothing where they are all there."""

from __future__ import annotations

from collections.abc import Iterable

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from penstock.cli.output import messages
from penstock.embedded import jars
from penstock.embedded.lock import artifacts_of


def fetch_shown(groups: Iterable[str]) -> None:
    """Fetch what is missing of these groups, with a bar for each."""
    wanted = [group for group in groups if jars.missing(artifacts_of(group))]
    if not wanted:
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=messages()) as bar:
        for group in wanted:
            jars.fetch(group, _shown_in(bar, group))


def _shown_in(bar: Progress, group: str) -> jars.Progress:
    task = bar.add_task(f"fetching jars: {group}", total=None)

    def show(_name: str, done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)

    return show
