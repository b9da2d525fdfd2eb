"""Records of Kafka as messages of a flow, in a worker of Spark; dead letters are records, too."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.config import Connection
from penstock.engine.dead_letters.letter import DeadLetter
from penstock.flows.compiled import CompiledFlow
from penstock.flows.dead_letters import definition_of, letters_of
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.triggers import KafkaTrigger
from penstock.flows.live.dead_letter_writer import DeadLetterWriter
from penstock.flows.live.live_systems import LiveSystems
from penstock.flows.message import Message
from penstock.flows.running.flow_run import DeadLetter as FailedMessage
from penstock.flows.running.flow_run import RunResult
from penstock.pipeline.derived_names import TASK_BATCH

RESULT = "topic string, partition int, offset bigint, status string"
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("status", pa.string()),
    ]
)


class _Open:
    """A compiled flow with its clients."""

    def __init__(self, flow: Flow, connection: Connection, source: Connection) -> None:
        self.compiled = CompiledFlow(flow)
        self.live = LiveSystems(connection)
        self.letters = DeadLetterWriter(source, flow.dead_letter_topic)


# One for a worker process: Spark uses the process for the next batch, too.
_open: dict[bytes, _Open] = {}


@dataclass(frozen=True)
class FlowBatches:
    """A flow over batches of records; it is sent to the workers."""

    flow: Flow
    connection: Connection
    source: Connection
    identity: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the flow over each batch; its rows are the outcomes of the records."""
        opened = self._opened()
        for batch in batches:
            messages = messages_of(batch, self._metadata())
            with _without_collector():
                result = opened.compiled.run(messages, opened.live.systems())
            if failed := result.dead_letters:
                self._write_dead_letters(failed, batch, opened.letters)
            yield _rows(batch, result)

    def _opened(self) -> _Open:
        if self.identity not in _open:
            _open[self.identity] = _Open(self.flow, self.connection, self.source)
        return _open[self.identity]

    def _metadata(self) -> tuple[str, ...]:
        trigger = self.flow.trigger
        return trigger.metadata if isinstance(trigger, KafkaTrigger) else ()

    def _write_dead_letters(
        self, failed: Sequence[FailedMessage], batch: pa.RecordBatch, writer: DeadLetterWriter
    ) -> None:
        """Write the dead letters; where that is not possible the batch fails, and is run again."""
        epoch, number = _batch_of_task()

        def record(row: int) -> DeadLetter:
            names = ("topic", "partition", "offset", "timestamp", "key", "value")
            given: dict[str, Any] = {name: batch.column(name)[row].as_py() for name in names}
            given |= {"pipeline": self.flow.name, "epoch": epoch, "batch": number}
            return DeadLetter(stage="step", **given)

        writer.write(letters_of(failed, record, definition_of(self.flow)))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Look for cycles once a batch: among ten thousand messages it takes a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _batch_of_task() -> tuple[int, int]:
    """Return epoch and number of the batch: a record that fails in another batch is another letter."""
    from pyspark import TaskContext  # noqa: PLC0415 - tests call this without Spark

    context = TaskContext.get()
    epoch, _, number = ((context and context.getLocalProperty(TASK_BATCH)) or "0 0").partition(" ")
    return int(epoch), int(number)


def messages_of(batch: pa.RecordBatch, metadata: Sequence[str] = ()) -> list[Message]:
    """Return the records of a batch as messages: the value as payload, their place as attributes."""
    names = ("topic", "partition", "offset", *metadata)
    columns = [_values(batch, name) for name in names]
    payloads = batch.column("value").to_pylist()
    rows = enumerate(zip(*columns, strict=True))
    return [
        Message(payload, dict(zip(names, values, strict=True)), place=(number,))
        for payload, (number, values) in zip(payloads, rows, strict=True)
    ]


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    column = batch.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _rows(batch: pa.RecordBatch, result: RunResult) -> pa.RecordBatch:
    statuses = pa.array([outcome.status for outcome in result.outcomes], pa.string())
    places = [batch.column(name) for name in ("topic", "partition", "offset")]
    return pa.RecordBatch.from_arrays(
        [column.cast(kind.type) for column, kind in zip([*places, statuses], _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
