"""Rows to nowhere: what is left is the cost of reading and decoding."""

from __future__ import annotations

from penstock.pipeline import Batch, Sink


class DiscardSink(Sink):
    """Computes every row and keeps none. For measuring."""

    name = "discard"

    def write(self, batch: Batch) -> None:
        """Compute the rows."""
        batch.rows.write.format("noop").mode("overwrite").save()
