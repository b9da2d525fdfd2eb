"""A sink: its options are a definition, `open` returns what writes."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pyspark.sql import functions as f

from penstock.pipeline import Batch, Opening, Sink, Writer


class LinesSink(Sink):
    """Rows as JSON objects, one on each line, at the end of one file.

    At-least-once: a batch that is run again after a crash is appended again.
    """

    name = "lines"
    main_option = "path"

    path: Path = Field(description="The file, on the driver's machine; made where it is missing.")

    def open(self, opening: Opening) -> Writer:
        """Return what appends the rows."""
        return LinesWriter(self, opening)


class LinesWriter(Writer[LinesSink]):
    """Appends the rows of each batch."""

    def write(self, batch: Batch) -> None:
        """Write the rows; the batch counts as written when this returns."""
        rows = batch.rows.select(f.to_json(f.struct("*")).alias("line")).toArrow()
        with self.sink.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in rows.column("line").to_pylist())
