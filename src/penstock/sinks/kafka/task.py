"""What a task of an exactly-once write does: one transaction with its records and its mark."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException
from msgspec import Struct
from pyspark import TaskContext

from penstock.error_frame import to_document
from penstock.errors import (
    ConfigError,
    PenstockError,
    RefusedError,
    TerminalError,
    TransientError,
)
from penstock.kafka.error_table import Group, group
from penstock.kafka.kafka_errors import reason
from penstock.kafka.producing.record_transaction import Transaction
from penstock.pipeline import Mark
from penstock.sinks.kafka.kafka_marks import Marks, note_of
from penstock.sinks.kafka.task_marks import TaskScope

if TYPE_CHECKING:
    from penstock.config import Connection
    from penstock.sinks.messages.record_encodes import BatchEncode

# How the driver passes each task its scope, which is known only when the plan has its tasks.
SCOPES = "penstock.kafka.partitions"
# What a task reports when it failed: the error as a document (`penstock.error_frame`).
OUTCOME = "error string"
_SCHEMA = pa.schema({"error": pa.string()})
# What Spark sends after the last row, and does not send when the rows before it broke off.
_END_OF_STREAM = (-4).to_bytes(4, "big", signed=True)
_OF_THE_RECORD = (group("record too large"), group("bad record"))
_NOT_BY_WAITING = tuple(
    map(group, ("refused", "forbidden", "wrong request", "missing topic", "not supported"))
)
# Where the row itself names its topic and partition, a wrong name is the row's own.
_OF_THE_ADDRESS = group("missing topic").codes | {
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._INVALID_ARG,
}


class Task(Struct, frozen=True):
    """The write, as every task of it receives it."""

    connection: Connection
    topic: str
    label: str
    mark: Mark
    settings: dict[str, Any]
    # Whether rows name their topic or partition themselves.
    addressed: bool
    # What makes bytes of the columns, where Spark has not made them.
    encode: BatchEncode | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the task's rows; a failure is returned, not raised: Spark would reduce it to text."""
        try:
            self._write(iter(batches))
        except PenstockError as error:
            _drain(batches)
            document = to_document(verdict(error, addressed=self.addressed), "write")
            outcome = {"error": msgspec.json.encode(document).decode()}
            yield pa.RecordBatch.from_pylist([outcome], _SCHEMA)

    def _write(self, batches: Iterator[pa.RecordBatch]) -> None:
        # An error of a row must leave the remaining rows to be read: they are not encoded then.
        encoded = batches if self.encode is None else iter(self.encode(batches))
        first = next((batch for batch in encoded if batch.num_rows), None)
        if first is None:
            return  # without rows there is nothing to mark: a repetition has no rows either
        scope = _scope()
        marks = Marks(self.connection, scope.group)
        try:
            with Transaction(self.connection, scope.transaction, self.settings) as transaction:
                # Only now: an open transaction of an earlier run of this task is resolved.
                if scope.is_written(marks.read(scope.spans), self.mark):
                    _drain(batches)
                    return
                transaction.begin()
                transaction.send(first, self.topic)
                for batch in encoded:
                    transaction.send(batch, self.topic)
                require_the_end()
                notes = {span: note_of(self.label, span.start) for span in scope.spans}
                marks.commit(transaction, notes)
        finally:
            marks.close()


def _drain(batches: Iterable[pa.RecordBatch]) -> None:
    """Read the remaining rows: they are counted on their way here."""
    for _ in batches:
        continue


def _scope() -> TaskScope:
    context = TaskContext.get()
    encoded = context and context.getLocalProperty(SCOPES)
    if not context or not encoded:
        raise TerminalError(f"this Spark did not pass the property {SCOPES!r} to its tasks")
    scopes = msgspec.json.decode(encoded, type=list[TaskScope])
    return scopes[context.partitionId()]


def require_the_end() -> None:
    """Raise if the rows ended early because an earlier operator failed.

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


def verdict(error: PenstockError, *, addressed: bool) -> PenstockError:
    """Return the error for the engine; `addressed`: rows name their own topic or partition.

    A transaction can be repeated after nearly every error, so an unknown one is retried.
    """
    cause = error.__cause__
    if not isinstance(cause, KafkaException):
        return error
    code, message = cause.args[0].code(), reason(cause.args[0])
    if group := _within(_OF_THE_RECORD, code):
        return RefusedError(f"Kafka refuses a record: {message}; {group.hint}")
    if addressed and code in _OF_THE_ADDRESS:
        return RefusedError(f"a row names a topic or partition that does not exist: {message}")
    if group := _within(_NOT_BY_WAITING, code):
        return ConfigError(f"writing to Kafka: {message}; {group.hint}")
    if isinstance(error, TransientError):
        return error
    return TransientError(f"the transaction was given up and is tried again: {error}")


def _within(groups: tuple[Group, ...], code: int) -> Group | None:
    return next((each for each in groups if code in each.codes), None)
