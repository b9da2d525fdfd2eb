"""Rows on the terminal, for looking at a topic."""

from __future__ import annotations

from pydantic import Field
from rich.console import Console
from rich.table import Table

from penstock.pipeline import Batch, Sink


class ConsoleSink(Sink):
    """The first rows of each batch, as a table on standard output."""

    name = "console"

    rows: int = Field(default=20, ge=1, description="The most rows to show of a batch.")

    def write(self, batch: Batch) -> None:
        """Print the first rows."""
        shown = batch.rows.limit(self.rows).toArrow()
        table = Table(*shown.column_names, title=f"{batch.pipeline}, batch {batch.id}")
        for row in shown.to_pylist():
            table.add_row(*("null" if value is None else str(value) for value in row.values()))
        Console().print(table)
