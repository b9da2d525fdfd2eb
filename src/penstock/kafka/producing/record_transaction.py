"""Records from Arrow to librdkafka in transactions, with as little Python for each as can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise, repeat
from time import monotonic
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from penstock.config import Connection
from penstock.errors import PenstockError, RefusedError, TransientError
from penstock.kafka.handle import Handle
from penstock.kafka.producing.copies import Copies
from penstock.kafka.producing.plain_records import PlainRecords
from penstock.kafka.producing.transactions import Transactions

_PATIENCE = 60.0
_DEFAULTS = {
    "linger.ms": 20,
    "batch.num.messages": 100_000,
    # A bound on memory: a task waits when the brokers are slower than its rows.
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 65_536,
    "message.timeout.ms": 120_000,
    # The longest that brokers allow by default: slow steps before the sink are within it.
    "transaction.timeout.ms": 900_000,
    # As the Java client does it, so that a key stays in its partition whatever the delivery.
    "partitioner": "murmur2_random",
}
_ANY_PARTITION = -1
AROUND = 1000
"""What librdkafka and Kafka add to a record: its limits are about all of it."""
Message = tuple[Any, ...]
"""What `produce` takes, in its order."""


class Transaction:
    """A producer for transactions, one by one. Made, it has fenced every earlier one of its name."""

    def __init__(self, connection: Connection, name: str, settings: dict[str, Any]) -> None:
        self._handle = Handle(
            connection,
            "producer",
            {**_DEFAULTS, **settings},
            transactional_id=name,
            acks="all",
            enable_idempotence=True,
            # A report for each record would be half of the work; without one, all went well.
            delivery_report_only_error=True,
            on_delivery=self._note,
        )
        self._failed: KafkaError | None = None
        self._delivery_time = self._handle.get("message.timeout.ms") / 1000 + 10
        self._open = False
        self.largest = int(self._handle.get("message.max.bytes", 1_000_000)) - AROUND
        with self._handle.translated("making a producer"):
            self._client: Any = Producer(self._handle.settings())
        self._transactions = Transactions(self._client, self._handle)
        self._transactions.init(_PATIENCE)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open:
            # What went wrong first is what counts; the next one of this name aborts it all the same.
            with suppress(PenstockError):
                self._transactions.abort(_PATIENCE)
        self._client.purge()
        # One that was fenced says so once more.
        with suppress(KafkaException):
            self._client.close()

    def begin(self) -> None:
        """Begin."""
        self._transactions.begin(_PATIENCE)
        self._open = True

    def send(self, batch: pa.RecordBatch | PlainRecords | Copies, topic: str) -> None:
        """Send a batch: the column `value` and, if they exist, key and the others; or what has none."""
        produce = self._client.produce
        is_columns = isinstance(batch, pa.RecordBatch)
        messages = messages_of(batch, topic) if is_columns else batch.messages(topic)
        try:
            for message in messages:
                try:
                    produce(*message)
                except BufferError:
                    self._when_there_is_room(message)
        except KafkaException as problem:
            self._raise_why(problem)
        except (OverflowError, ValueError) as problem:
            raise RefusedError(
                f"a row names a topic or partition that cannot be: {problem}"
            ) from None
        self._client.poll(0)

    def commit(self, marks: Sequence[TopicPartition] = (), group: Any = None) -> None:
        """Deliver what waits, and let it be seen together with these offsets of a group."""
        try:
            left = self._client.flush(self._delivery_time)
        except SystemError as error:
            # The binding calls `on_delivery` although it has failed itself: it was fenced, say.
            if isinstance(error.__cause__, KafkaException):
                raise self._handle.translate(
                    error.__cause__.args[0], "writing a record"
                ) from error.__cause__
            raise
        self._raise_failed()
        if left:
            raise self._too_slow(left)
        if marks:
            self._transactions.send_places([*marks], group, _PATIENCE)
        self._transactions.commit(_PATIENCE)
        self._open = False

    def _when_there_is_room(self, message: Message) -> None:
        deadline = monotonic() + self._delivery_time
        while monotonic() < deadline:
            self._client.poll(0.05)
            try:
                self._client.produce(*message)
            except BufferError:
                continue
            return
        raise self._too_slow(len(self._client))

    def _too_slow(self, left: int) -> TransientError:
        return TransientError(
            f"{left} records did not reach {self._handle.brokers} within "
            f"{self._delivery_time:g} s; check the brokers"
        )

    def _note(self, error: KafkaError | None, _message: object) -> None:
        """Keep the first failure: those after it only say that the transaction is lost."""
        self._failed = self._failed or error

    def _raise_failed(self) -> None:
        if self._failed is not None:
            cause = KafkaException(self._failed)
            raise self._handle.translate(self._failed, "writing a record") from cause

    def _raise_why(self, problem: KafkaException) -> None:
        """Raise for a record that was not taken: for its own sake, or because one before it failed."""
        if problem.args[0].code() == KafkaError._STATE:
            self._client.poll(1.0)
            self._raise_failed()
        raise self._handle.translate(problem.args[0], "writing a record") from problem


def messages_of(batch: pa.RecordBatch, topic: str) -> Iterable[Message]:
    """Return the arguments of `produce` for each row.

    >>> rows = pa.record_batch({"value": pa.array([b"1", None]), "key": pa.array([b"a", b"b"])})
    >>> list(messages_of(rows, "t"))
    [('t', b'1', b'a'), ('t', None, b'b')]
    """
    names = set(batch.schema.names)
    topics = batch.column("topic").to_pylist() if "topic" in names else repeat(topic)
    values = batch.column("value").to_pylist()
    keys = batch.column("key").to_pylist() if "key" in names else repeat(None)
    if not names & {"partition", "headers", "timestamp"}:
        return zip(topics, values, keys)  # noqa: B905 - repeat has no end
    nothing = repeat(None)
    partitions = (
        batch.column("partition").fill_null(_ANY_PARTITION).to_pylist()
        if "partition" in names
        else repeat(_ANY_PARTITION)
    )
    times = (
        batch.column("timestamp").fill_null(0).to_pylist() if "timestamp" in names else repeat(0)
    )
    headers = _headers(batch.column("headers")) if "headers" in names else nothing
    return zip(topics, values, keys, partitions, nothing, nothing, times, headers)  # noqa: B905


def _headers(column: Any) -> list[list[tuple[str, bytes | None]] | None]:
    """Return the headers of each row as pairs.

    >>> kind = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    >>> _headers(pa.array([[{"key": "a", "value": b"1"}], [], None], kind))
    [[('a', b'1')], None, None]
    """
    pairs = column.flatten()
    every = list(zip(*(pairs.field(name).to_pylist() for name in ("key", "value")), strict=True))
    ends = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).cumsum().tolist()
    return [every[start:end] or None for start, end in pairwise([0, *ends])]
