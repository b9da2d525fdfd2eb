"""What a task of an exactly-once write does: one transaction with its records and its mark."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyspark import TaskContext

from penstock.errors import PenstockError, TerminalError
from penstock.pipeline import Mark
from penstock.sinks.kafka.marks import Marks
from penstock.sinks.kafka.places import Place
from penstock.sinks.kafka.transaction import Transaction
from penstock.sinks.kafka.verdict import verdict

if TYPE_CHECKING:
    from penstock.config import Connection

# How the driver tells each task its place: known only when the plan, with its tasks, stands.
PLACES = "penstock.kafka.places"
# What a task says when it failed: a class of `penstock.errors`, and the message.
OUTCOME = "kind string, message string"
_SCHEMA = pa.schema({"kind": pa.string(), "message": pa.string()})
# What Spark sends after the last row, and does not send when the rows before it broke off.
_END_OF_STREAM = (-4).to_bytes(4, "big", signed=True)


class Task(Struct, frozen=True):
    """The write, as every task of it is told."""

    connection: Connection
    topic: str
    label: str
    mark: Mark
    settings: dict[str, Any]
    # Whether rows name their topic or partition themselves.
    addressed: bool

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the task's rows; a failure is told, not raised: Spark would make text of it."""
        try:
            self._write(iter(batches))
        except PenstockError as error:
            _drain(batches)
            told = verdict(error, addressed=self.addressed)
            outcome = {"kind": type(told).__name__, "message": str(told)}
            yield pa.RecordBatch.from_pylist([outcome], _SCHEMA)

    def _write(self, batches: Iterator[pa.RecordBatch]) -> None:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return  # nothing to write is nothing to mark: it will be nothing the next time, too
        place = _place()
        marks = Marks(self.connection, place.group)
        try:
            with Transaction(self.connection, place.transaction, self.settings) as transaction:
                # Only now: what an earlier run of this task was about to commit is decided.
                if place.is_written(marks.read(place.spans), self.mark):
                    _drain(batches)
                    return
                transaction.begin()
                transaction.send(first, self.topic)
                for batch in batches:
                    transaction.send(batch, self.topic)
                require_the_end()
                transaction.commit(place.spans, self.label, marks.metadata())
        finally:
            marks.close()


def _drain(batches: Iterable[pa.RecordBatch]) -> None:
    """Take the rows that are left: they are counted on their way here."""
    for _ in batches:
        continue


def _place() -> Place:
    context = TaskContext.get()
    told = context and context.getLocalProperty(PLACES)
    if not context or not told:
        raise TerminalError(f"this Spark did not hand the property {PLACES!r} to its tasks")
    places = msgspec.json.decode(told, type=list[Place])
    return places[context.partitionId()]


def require_the_end() -> None:
    """Refuse to go on where the rows broke off because something before us failed.

    Spark then merely closes the connection, which Arrow takes for the end of the rows; to commit
    would be to lose the rest.
    """
    frame = sys._getframe()
    while frame is not None and not _is_spark_worker(frame):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        raise TerminalError("this PySpark is not known: no way to see whether all rows have come")
    seen = frame.f_locals["infile"].peek(4)[:4]
    if not seen or not _END_OF_STREAM.startswith(seen):
        raise EOFError("the rows broke off: an earlier part of this task failed")


def _is_spark_worker(frame: Any) -> bool:
    return (
        frame.f_code.co_name == "main"
        and frame.f_globals.get("__name__", "").endswith("pyspark.worker")
        and "infile" in frame.f_locals
    )
