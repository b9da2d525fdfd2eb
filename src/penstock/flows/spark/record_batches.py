"""Records of Kafka as messages of a flow, in a worker of Spark; dead letters are records, too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.errors import TransientError
from penstock.flows.compiled import CompiledFlow
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.kafka_options import ProducerAdvanced
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import Expression, Template
from penstock.flows.listener.reply import refused_reply
from penstock.flows.live.live_systems import LiveSystems
from penstock.flows.message import Message
from penstock.flows.publish.operations import KafkaPublish
from penstock.flows.running.flow_run import DeadLetter, RunResult, shown
from penstock.flows.running.systems import PublishRequest
from penstock.flows.spark.trigger_source import TriggerSource
from penstock.flows.spark.trigger_sources import trigger_source

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
# The compiled flows of a worker process, with their clients, by name: Spark uses the process for the
# next batch, too. A flow that was started again may have other secrets: it replaces its predecessor.
_open: dict[str, OpenFlow] = {}


class OpenFlow(NamedTuple):
    """A flow in a worker process."""

    run: str
    compiled: CompiledFlow
    live: LiveSystems


@dataclass(frozen=True)
class FlowBatches:
    """A flow over batches of records; it is sent to the workers."""

    flow: Flow
    connection: Connection
    run: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the flow over each batch; its rows are the outcomes of the records."""
        trigger = trigger_source(self.flow)
        _, compiled, live = self._opened()
        for batch in batches:
            result = compiled.run(messages_of(batch, trigger), live.systems())
            self._write_dead_letters(result.dead_letters, live)
            self._write_replies(trigger.replies(result), live)
            yield _rows(batch, result)

    def _opened(self) -> OpenFlow:
        known = _open.get(self.flow.name)
        if known is not None and known.run != self.run:
            known.live.close()
            known = None
        if known is None:
            known = OpenFlow(self.run, CompiledFlow(self.flow), LiveSystems(self.connection))
            _open[self.flow.name] = known
        return known

    def _write_dead_letters(self, letters: Sequence[DeadLetter], live: LiveSystems) -> None:
        """Write the dead letters; where that is not possible the batch fails, and is run again."""
        if not letters:
            return
        topic = self.flow.dead_letter_topic
        requests = [PublishRequest(dead_letter_record(letter, topic)) for letter in letters]
        for receipt in live.publish("dead_letters", _to(topic), requests):
            if isinstance(receipt, Fault):
                raise TransientError(f"dead letters cannot be written to {topic}: {receipt}")

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


def _to(topic: str) -> KafkaPublish:
    return KafkaPublish(
        topic=Template(topic), value=Expression("payload"), producer=ProducerAdvanced(acks="all")
    )


def messages_of(batch: pa.RecordBatch, trigger: TriggerSource) -> list[Message]:
    """Return the records of a batch as messages: the value is the payload."""
    places, more = _dicts(batch, _PLACE), _dicts(batch, trigger.columns)
    return [
        Message(payload, {**trigger.attributes(record), **place})
        for payload, place, record in zip(
            batch.column("value").to_pylist(), places, more, strict=True
        )
    ]


def _dicts(batch: pa.RecordBatch, names: Sequence[str]) -> list[dict[str, Any]]:
    columns = [_values(batch, name) for name in names]
    rows = zip(*columns, strict=True) if columns else [()] * batch.num_rows
    return [dict(zip(names, row, strict=True)) for row in rows]


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    column = batch.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def dead_letter_record(letter: DeadLetter, topic: str) -> dict[str, Any]:
    """Return a dead letter as a record: the original value, and headers that say what happened.

    `penstock.flow.message` has the message at the step that failed: fixed, it is replayed from there.
    """
    origin = letter.original.attribute
    headers = {
        "penstock.flow.code": letter.error["Code"],
        "penstock.flow.description": letter.error["Description"],
        "penstock.flow.step": letter.from_step,
        "penstock.flow.trail": ", ".join(letter.trail),
        "penstock.flow.message": json.dumps(shown(letter.message.shown())),
        **{f"penstock.{name}": str(origin[name]) for name in _PLACE if name in origin},
    }
    return {
        "topic": topic,
        "key": None,
        "value": letter.original.payload,
        "partition": None,
        "headers": [(name, value.encode("utf-8", "replace")) for name, value in headers.items()],
    }


def _rows(batch: pa.RecordBatch, result: RunResult) -> pa.RecordBatch:
    statuses = pa.array([outcome.status for outcome in result.outcomes], pa.string())
    places = [batch.column(name) for name in _PLACE]
    return pa.RecordBatch.from_arrays(
        [column.cast(kind.type) for column, kind in zip([*places, statuses], _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
