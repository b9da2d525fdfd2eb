"""Rows to nowhere: what is left is the cost of reading and decoding."""

from __future__ import annotations

from penstock.pipeline import Batch, Opening, Sink, Writer


class DiscardSink(Sink):
    """Computes every row and keeps none. For measuring."""

    name = "discard"

    def open(self, opening: Opening) -> Writer:
        """Return what computes the rows."""
        return _Discard(self, opening)


class _Discard(Writer[DiscardSink]):
    def write(self, batch: Batch) -> None:
        """Compute the rows."""
        batch.rows.write.format("noop").mode("overwrite").save()
