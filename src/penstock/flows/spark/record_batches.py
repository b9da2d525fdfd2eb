"""Records of Kafka as messages of a flow, in a worker of Spark; dead letters are records, too."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.engine.dead_letters.letter import DeadLetter
from penstock.flows.compiled import CompiledFlow
from penstock.flows.dead_letters import definition_of, letters_of
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.kafka_options import ProducerAdvanced
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import Expression, Template
from penstock.flows.listener.reply import refused_reply
from penstock.flows.live.dead_letter_writer import DeadLetterWriter
from penstock.flows.live.live_systems import LiveSystems
from penstock.flows.message import Message
from penstock.flows.publish.operations import KafkaPublish
from penstock.flows.running.flow_run import DeadLetter as FailedMessage
from penstock.flows.running.flow_run import RunResult
from penstock.flows.running.systems import PublishRequest
from penstock.flows.spark.trigger_source import TriggerSource
from penstock.flows.spark.trigger_sources import trigger_source
from penstock.pipeline.derived_names import TASK_BATCH

log = event_logger(__name__)
_PLACE = ("topic", "partition", "offset")
RESULT = "topic string, partition int, offset bigint, status string"
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("status", pa.string()),
    ]
)


class OpenFlow(NamedTuple):
    """A flow in a worker process, with its clients."""

    run: str
    compiled: CompiledFlow
    live: LiveSystems
    letters: DeadLetterWriter

    @classmethod
    def of(cls, flow: Flow, connection: Connection, source: Connection, run: str) -> OpenFlow:
        """Return a flow; its clients connect when they are first used."""
        letters = DeadLetterWriter(source, flow.dead_letter_topic)
        return cls(run, CompiledFlow(flow), LiveSystems(connection), letters)

    def close(self) -> None:
        """Close the clients."""
        self.live.close()
        self.letters.close()


# The compiled flows of a worker process, with their clients, by name: Spark uses the process for the
# next batch, too. A flow that was started again may have other secrets: it replaces its predecessor.
_open: dict[str, OpenFlow] = {}


@dataclass(frozen=True)
class FlowBatches:
    """A flow over batches of records; it is sent to the workers."""

    flow: Flow
    connection: Connection
    source: Connection
    run: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the flow over each batch; its rows are the outcomes of the records."""
        trigger = trigger_source(self.flow)
        opened = self._opened()
        for batch in batches:
            with _without_collector():
                messages = messages_of(batch, trigger)
                result = opened.compiled.run(messages, opened.live.systems())
            try:
                if failed := result.dead_letters:
                    self._write_dead_letters(failed, batch, opened.letters)
                self._write_replies(trigger.replies(result), opened.live)
            except BaseException:
                result.undo()
                raise
            yield _rows(batch, result)

    def _opened(self) -> OpenFlow:
        known = _open.get(self.flow.name)
        if known is not None and known.run != self.run:
            known.close()
            known = None
        if known is None:
            known = OpenFlow.of(self.flow, self.connection, self.source, self.run)
            _open[self.flow.name] = known
        return known

    def _write_dead_letters(
        self, failed: Sequence[FailedMessage], batch: pa.RecordBatch, writer: DeadLetterWriter
    ) -> None:
        """Write the dead letters; where that is not possible the batch fails, and is run again."""
        epoch, number = _batch_of_task()

        def record(row: int) -> DeadLetter:
            names = ("topic", "partition", "offset", "timestamp", "key", "value")
            given: dict[str, Any] = {name: batch.column(name)[row].as_py() for name in names}
            own = batch.column("headers")[row].as_py() if "headers" in batch.schema.names else None
            given["headers"] = [(each["key"], each["value"]) for each in own or ()]
            given |= {"pipeline": self.flow.name, "epoch": epoch, "batch": number}
            return DeadLetter(stage="step", **given)

        writer.write(letters_of(failed, record, definition_of(self.flow)))

    def _write_replies(self, replies: Sequence[PublishRequest], live: LiveSystems) -> None:
        """Write results for those who wait for them.

        A result that Kafka refuses is replaced by that error. While no broker can be reached, the batch
        goes on: what was published must not be published again for the sake of a reply.
        """
        if not replies:
            return
        to = _to(replies[0].fields["topic"])
        receipts = live.publish("replies", to, replies)
        failed = [(r, f) for r, f in zip(replies, receipts, strict=True) if isinstance(f, Fault)]
        if failed:
            log.warning(
                "replies_not_written",
                flow=self.flow.name,
                count=len(failed),
                error=str(failed[0][1]),
            )
        refused = [refused_reply(r, f) for r, f in failed if f.code == "KAFKA:REFUSED"]
        if refused:
            live.publish("replies", to, refused)


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


def _to(topic: str) -> KafkaPublish:
    return KafkaPublish(
        topic=Template(topic), value=Expression("payload"), producer=ProducerAdvanced(acks="all")
    )


def messages_of(batch: pa.RecordBatch, trigger: TriggerSource) -> list[Message]:
    """Return the records of a batch as messages: the value is the payload."""
    places, payloads = _places(batch), batch.column("value").to_pylist()
    if trigger.columns:
        more = map(trigger.attributes, _dicts(batch, trigger.columns))
        places = [{**each, **place} for each, place in zip(more, places, strict=True)]
    return [
        Message(payload, attribute, {}, None, (number,))
        for number, (payload, attribute) in enumerate(zip(payloads, places, strict=True))
    ]


def _places(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows = zip(*(batch.column(name).to_pylist() for name in _PLACE), strict=True)
    return [{"topic": topic, "partition": part, "offset": offset} for topic, part, offset in rows]


def _dicts(batch: pa.RecordBatch, names: Sequence[str]) -> list[dict[str, Any]]:
    columns = [_values(batch, name) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    column = batch.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _rows(batch: pa.RecordBatch, result: RunResult) -> pa.RecordBatch:
    statuses = pa.array([outcome.status for outcome in result.outcomes], pa.string())
    places = [batch.column(name) for name in _PLACE]
    return pa.RecordBatch.from_arrays(
        [column.cast(kind.type) for column, kind in zip([*places, statuses], _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
