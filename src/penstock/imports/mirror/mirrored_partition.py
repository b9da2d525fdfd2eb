"""One partition of the source, read up to its end in a task."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.config import Connection
from penstock.errors import ConfigError, DataLossError, TransientError
from penstock.imports.mirror.committed_ends import CommittedEnds
from penstock.imports.mirror.record_limits import Limits, bad_record
from penstock.imports.mirror.sync_points import Point, read_points, with_point
from penstock.kafka import Admin
from penstock.kafka.handle import Handle
from penstock.kafka.offsets import NO_GROUP
from penstock.kafka.producing.copies import Copies
from penstock.pipeline.importing import BadRecord, Part, Place, Portion, Position, Reader

# About how much is asked for at a time, in bytes, and how many records.
_AT_ONCE = 4 * 2**20
_MOST = 10_000
_PATIENCE = 20.0
_ANSWER = 10.0
_WAIT = 0.05
# How long one transaction is filled, in seconds: after a minute its task would end it unchecked.
_LONGEST = 30.0
_GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION)
_PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)
_MISSING = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
_SETTINGS = {
    # A bound on memory; more than it takes to keep the producer busy.
    "queued.max.messages.kbytes": 32_768,
    "queued.min.messages": 200_000,
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 50,
}


@dataclass(frozen=True)
class MirroredPartition(Part):
    """A partition of a topic, where it is copied to, and what is known of both."""

    source: Connection
    target: Connection
    cluster_id: str
    alias: str
    topic: str
    partition: int
    topic_id: str
    into: str
    into_id: str
    # Where to begin without a position: its oldest record.
    first: int
    limits: Limits
    skips_lost: bool

    @property
    def place(self) -> Place:
        """Return which partition of which cluster it is."""
        return {"cluster": self.cluster_id, "topic": self.topic, "partition": self.partition}

    @property
    def names(self) -> Mapping[str, str]:
        """Return the names of its topic and its cluster."""
        return {"topic": self.topic, "cluster": self.alias}

    @property
    def producer(self) -> Mapping[str, Any]:
        """Return what lets every record through that the topic takes, in batches that it takes."""
        largest = self.limits.largest
        return {
            "message.max.bytes": min(max(largest, 1_000_000), 1_000_000_000),
            "batch.size": min(largest, 1_000_000),
            "queue.buffering.max.kbytes": max(65_536, 2 * largest // 1024),
        }

    def is_same(self, position: Position) -> bool:
        """Return whether a position is one of this topic, and not of an earlier one with its name."""
        return bool(position.get("topic_id", self.topic_id) == self.topic_id)

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Connect to both clusters."""
        known = position if position and self.is_same(position) else None
        with ExitStack() as stack:
            admin = stack.enter_context(Admin(self.source, timeout=_ANSWER))
            ends = stack.enter_context(CommittedEnds(self.target, "read_uncommitted"))
            yield stack.enter_context(PartitionReader(self, known, admin, ends))


class PartitionReader(Reader):
    """A consumer of one partition, from a position to its end."""

    def __init__(
        self,
        part: MirroredPartition,
        position: Position | None,
        admin: Admin,
        ends: CommittedEnds,
    ) -> None:
        self._part = part
        self._admin = admin
        self._ends = ends
        self._is_first = position is None
        known = position or {}
        same = known.get("into_id") == part.into_id
        self._points: list[Point] = read_points(known.get("points")) if same else []
        self._offset = part.first if position is None else _number(known.get("offset"), part)
        self._epoch: int | None = known.get("epoch")
        self._ended = False
        self._most = _AT_ONCE // 4096
        self._lost: list[BadRecord] = []
        self._handle = Handle(
            part.source,
            "consumer",
            _SETTINGS,
            group_id=NO_GROUP,
            enable_auto_commit=False,
            enable_partition_eof=True,
            isolation_level="read_committed",
            auto_offset_reset="error",
        )
        with self._handle.translated("making a consumer"):
            self._client: Any = Consumer(self._handle.settings())

    def __enter__(self) -> PartitionReader:
        self._assign()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def take(self, most: int) -> Iterator[Portion]:
        """Yield what comes next; at the end a position without records, if the end has moved."""
        if self._ended:
            return
        # Before anything is sent: all that comes now is in the target at this offset or later.
        self._points = with_point(self._points, (self._offset, self._target_end()))
        count, until = 0, time.monotonic() + _LONGEST
        while count < most and not self._ended and time.monotonic() < until:
            before = self._offset
            messages = self._fetched()
            if self._offset != before or self._lost:
                yield self._portion(messages)
            count += len(messages)
        # After the reading: what was read is of this topic, and not of one that replaced it meanwhile.
        self._require_same_topic()

    def _fetched(self) -> list[Message]:
        """Return the next messages; none where the end was reached."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            with self._handle.translated(f"reading {self._name}"):
                fetched = self._client.consume(self._most, _WAIT)
            messages = self._sorted_out(fetched) if fetched else []
            if messages or self._ended:
                return messages
            if time.monotonic() > deadline:
                self._handle.raise_refusal(f"reading {self._name}")
                raise TransientError(
                    f"{self._name} of {self._handle.brokers} was not read for {_PATIENCE:g} s; check the "
                    "brokers"
                )

    def _sorted_out(self, fetched: list[Message]) -> list[Message]:
        """Note how far it was read, or what went wrong; return the messages that are records."""
        if not any(map(Message.error, fetched)):
            self._note(fetched)
            return fetched
        messages = [each for each in fetched if each.error() is None]
        if messages:
            self._note(messages)
        for each in fetched:
            self._look_at(each)
        last = fetched[-1]
        error = last.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            self._ended = True
            end = last.offset() or 0
            if end > self._offset:
                # Markers of transactions, of whatever leader.
                self._offset, self._epoch = end, None
        return messages

    def _note(self, messages: list[Message]) -> None:
        last = messages[-1]
        self._is_first = False
        self._offset, self._epoch = (last.offset() or 0) + 1, last.leader_epoch()
        size = sum(map(len, messages)) // len(messages) + 100
        self._most = max(1, min(_MOST, _AT_ONCE // size))

    def _look_at(self, message: Message) -> None:
        error = message.error()
        if error is None or error.code() in (KafkaError._PARTITION_EOF, *_PASSING):
            return
        if error.code() in _GONE:
            self._after_loss(error)
        elif error.code() in _MISSING:
            raise TransientError(f"{self._name} was deleted while it was read")
        elif not error.retriable():
            raise self._handle.translate(error, f"reading {self._name}") from KafkaException(error)

    def _after_loss(self, error: KafkaError) -> None:
        """Go on at the first record that exists, where that is allowed."""
        where = (self._part.topic, self._part.partition)
        oldest, end = self._admin.earliest([where])[where], self._admin.latest([where])[where]
        if self._offset < oldest:
            lost = (
                f"the offsets {self._offset} to {oldest - 1} were removed before they were copied"
            )
            start = oldest
        else:
            start = min(self._offset, end)
            lost = f"it was truncated before {self._offset}, and records may have been replaced"
            self._points = []
        if not self._is_first:
            lost = f"{self._name} of {self._handle.brokers}: {lost} ({error.name()})"
            if not self._part.skips_lost:
                raise DataLossError(
                    f"{lost}; to go on without them give 'on_data_loss: skip', or set the position with "
                    "'penstock offsets set'"
                )
            self._lost.append(BadRecord(None, lost, "DataLossError"))
        self._offset, self._epoch = start, None
        self._assign()

    def _portion(self, messages: list[Message]) -> Portion:
        part = self._part
        bad, self._lost = self._lost, []
        if refused := part.limits.refused(messages):
            bad += [bad_record(messages[n], why, part.into) for n, why in sorted(refused.items())]
            messages = [each for index, each in enumerate(messages) if index not in refused]
        return Portion(Copies(messages, part.partition), self._position(), tuple(bad))

    def _position(self) -> Position:
        part = self._part
        epoch = {} if self._epoch is None else {"epoch": self._epoch}
        return {
            "offset": self._offset,
            **epoch,
            "topic_id": part.topic_id,
            "into": part.into,
            "into_id": part.into_id,
            "points": self._points,
        }

    def _assign(self) -> None:
        where = (self._part.topic, self._part.partition, self._offset)
        epoch: dict[str, Any] = {} if self._epoch is None else {"leader_epoch": self._epoch}
        with self._handle.translated(f"reading {self._name}"):
            self._client.assign([TopicPartition(*where, **epoch)])

    def _target_end(self) -> int:
        where = (self._part.into, self._part.partition)
        return self._ends.ends([where])[where]

    def _require_same_topic(self) -> None:
        part = self._part
        if self._admin.topic_ids([part.topic]).get(part.topic) != part.topic_id:
            raise TransientError(f"the topic {part.topic!r} was deleted while it was read")

    @property
    def _name(self) -> str:
        return f"{self._part.topic}/{self._part.partition}"


def _number(given: Any, part: MirroredPartition) -> int:
    """Return the offset of a position, which an operator may have written."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise ConfigError(
        f"the position of {part.topic}/{part.partition} has the offset {given!r}; allowed: a number from "
        "0, as in 'penstock offsets set NAME PART {\"offset\":0}'"
    )
