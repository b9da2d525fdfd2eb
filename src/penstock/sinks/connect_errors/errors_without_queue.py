"""Bad records without a dead letter queue: they end the connector, or are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import PipelineFailedError
from penstock.pipeline import Batch, Writer

if TYPE_CHECKING:
    from penstock.sinks.connect_errors.connect_errors_sink import ConnectErrors

_LONGEST = 2000


class WithoutQueue(Writer["ConnectErrors"]):
    """Logs bad records; the first one ends a connector that tolerates none."""

    sink: ConnectErrors

    def write(self, batch: Batch) -> None:
        """Log the records; raise the first one where none is tolerated."""
        if self.sink.tolerance == "all":
            # First: they are counted as they pass by.
            batch.rows.write.format("noop").mode("overwrite").save()
        self.sink.reporter().report(batch.rows)
        if self.sink.tolerance == "all":
            return
        first = batch.rows.orderBy("topic", "partition", "offset").limit(1)
        for row in first.toArrow().to_pylist():
            raise PipelineFailedError(_reason(row))


def _reason(row: dict[str, object]) -> str:
    """Return what ended the connector.

    >>> _reason({"topic": "t", "partition": 0, "offset": 7, "error_type": "ValueError", "error": "no"})
    'Tolerance exceeded in error handler: record t-0-7: ValueError: no'
    """
    place = "-".join(str(row[name]) for name in ("topic", "partition", "offset"))
    error = f"{row['error_type']}: {row['error']}"[:_LONGEST]
    return f"Tolerance exceeded in error handler: record {place}: {error}"
