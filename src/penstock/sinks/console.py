"""Rows on the terminal, for looking at a topic."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from penstock.config.printable import printable
from penstock.pipeline import Batch, Opening, Sink, Writer
from penstock.pipeline.computed_rows import computed


class ConsoleSink(Sink):
    """The first rows of each batch, as a table on standard output."""

    name = "console"

    rows: int = Field(default=20, ge=1, description="The most rows to show of a batch.")

    def open(self, opening: Opening) -> Writer:
        """Return the printer."""
        return _Printer(self, opening)


class _Printer(Writer[ConsoleSink]):
    def write(self, batch: Batch) -> None:
        """Print the first rows."""
        with computed(batch.rows) as rows:  # all of them: records are counted as they pass by
            shown = rows.limit(self.sink.rows).toArrow()
        # What a record says must neither steer the terminal nor be taken for rich's own marks.
        columns = [Column(Text(printable(name))) for name in shown.column_names]
        table = Table(*columns, title=f"{batch.pipeline}, batch {batch.id}")
        for row in shown.to_pylist():
            table.add_row(*(Text(_shown(value)) for value in row.values()))
        Console().print(table)


def _shown(value: Any) -> str:
    return "null" if value is None else printable(str(value))
