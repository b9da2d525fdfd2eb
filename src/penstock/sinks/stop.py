"""No rows at all: for dead letters of a pipeline that a bad record must end."""

from __future__ import annotations

from typing import ClassVar

from penstock.errors import PipelineFailedError
from penstock.pipeline import Batch, Delivery, Opening, Sink, Writer

_PLACE = ("topic", "partition", "offset")
_LONGEST = 2000


class StopSink(Sink):
    """Ends the pipeline when a row comes. As `dead_letters`: a bad record ends it, and is not skipped.

    The batch of the record stays open: the pipeline goes on with it when it is started again with a
    definition that takes the record, or after its group was moved past it.
    """

    name = "stop"
    delivers: ClassVar[frozenset[Delivery]] = frozenset(Delivery)

    def open(self, opening: Opening) -> Writer:
        """Return what refuses rows."""
        return _Stop(self, opening)


class _Stop(Writer[StopSink]):
    def write(self, batch: Batch) -> None:
        """Raise if there is a row."""
        for row in batch.rows.limit(1).toArrow().to_pylist():
            raise PipelineFailedError(_reason(row))


def _reason(row: dict[str, object]) -> str:
    """Return what ended the pipeline.

    >>> _reason({"topic": "t", "partition": 0, "offset": 7, "error_type": "ValueError", "error": "no"})
    'the record t-0-7 ends the pipeline, whose dead letters are not stored: ValueError: no'
    """
    if not {*_PLACE, "error"} <= row.keys():
        return "a row came, and the sink 'stop' takes none"
    place = "-".join(str(row[name]) for name in _PLACE)
    error = f"{row.get('error_type')}: {row['error']}"[:_LONGEST]
    return f"the record {place} ends the pipeline, whose dead letters are not stored: {error}"
