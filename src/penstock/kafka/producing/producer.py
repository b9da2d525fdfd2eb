"""Writing records: a full queue slows the caller down, and no failed delivery goes unnoticed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from penstock.config import ConnectionLike
from penstock.errors import PenstockError
from penstock.formats import Format, find_format
from penstock.kafka.consuming.consumer import Consumer
from penstock.kafka.handle import OnError, Partition
from penstock.kafka.producing.arguments import (
    ANY_PARTITION,
    TAKEN,
    HeadersLike,
    headers_of,
    key_of,
    partition_of,
)
from penstock.kafka.producing.partitioning import Partitioner, Partitions
from penstock.kafka.producing.receipt import OnDelivery, Receipt, SplitReceipt
from penstock.kafka.producing.record_splitting import Sizes
from penstock.kafka.producing.sender import RARE, SERVE_AFTER, Sender
from penstock.kafka.producing.table_producing import Batch, Columns
from penstock.kafka.producing.transactions import Transactions

_LAST_CHANCE = 5.0


class Producer:
    """Write records to topics.

    `produce` returns at once; while the local queue is full it waits, at most `queue_timeout`
    seconds. `flush` waits for the deliveries and raises when one failed that was not reported yet.
    `timeout` is how many seconds a request to the cluster may take, transactions included; it can be
    set.

    Examples
    --------
    ::

        with Producer(connection) as producer:
            producer.produce("trades", key="A", value=b'{"price": 1}')
            producer.produce("trades", "A", {"price": 2}, format="json")
    """

    def __init__(
        self,
        connection: ConnectionLike,
        *,
        format: str | Format | None = None,
        key_format: str | Format | None = None,
        partitioner: Partitioner | None = None,
        queue_timeout: float = 30.0,
        on_error: OnError | None = None,
        **settings: Any,
    ) -> None:
        self._sender = sender = Sender(self, connection, queue_timeout, on_error, settings)
        self.connection = sender.handle.connection
        self.timeout: float = sender.handle.get("request.timeout.ms", 30_000) / 1000
        self.sizes = Sizes()
        self._format = None if format is None else find_format(format)
        self._key_format = None if key_format is None else find_format(key_format)
        self._partitions = Partitions(sender.client, sender.handle, partitioner)
        self._transactions = Transactions(sender.client, sender.handle)
        # Whether a record can go straight to librdkafka.
        self._plain = not (format or key_format or partitioner)

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *_exc: object) -> None:
        if exc_type is None:
            self.close()
        else:
            # Accepted records are still delivered, but must not hide the error on its way up.
            with suppress(PenstockError):
                self._sender.drain(_LAST_CHANCE)
            self._sender.close()

    def __len__(self) -> int:
        """Return how many records are not yet delivered."""
        return len(self._sender)

    def close(self) -> None:
        """Deliver what waits. The producer cannot be used again."""
        if self._sender.is_closed:
            return
        try:
            self.flush()
        finally:
            self._sender.close()

    @property
    def queue_timeout(self) -> float:
        """Return how many seconds `produce` waits while the local queue is full."""
        return self._sender.queue_timeout

    @queue_timeout.setter
    def queue_timeout(self, seconds: float) -> None:
        self._sender.queue_timeout = seconds

    @property
    def delivered(self) -> int:
        """Return how many records the brokers have acknowledged."""
        return self._sender.delivered

    @property
    def failed(self) -> int:
        """Return how many deliveries failed."""
        return self._sender.failures.count

    # -- writing

    def produce(  # noqa: PLR0917 - the order that users know
        self,
        topic: str,
        key: Any = None,
        value: Any = None,
        format: str | Format | None = None,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | datetime | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Receipt:
        """Send one value; wait for the receipt that is returned, await it, or ignore it.

        Without a format a value is bytes or text. A vector or table that is larger than
        `sizes.message` goes out as several records. The same key always goes to the same partition; a
        key is bytes, text or a whole number (sent as text). A timestamp is a time, or milliseconds
        since 1970 and at least 1: librdkafka takes 0 for "now".
        """
        sender = self._sender
        if (
            self._plain
            and value.__class__ in TAKEN
            and key.__class__ in TAKEN
            and format is None
            and headers is None
            and timestamp is None
            and on_delivery is None
        ):
            # Most records are like this, and a second call for each would cost a tenth of the speed.
            receipt: Receipt = sender.receipt()
            try:
                place = ANY_PARTITION if partition is None else partition
                sender.produce(topic, value, key, place, receipt)
            except RARE:
                return sender.send(topic, key, value, partition)
            sender.accepted = accepted = sender.accepted + 1
            if not accepted & SERVE_AFTER:
                sender.serve()
            return receipt
        rest = (headers_of(headers), timestamp, on_delivery)
        # All before the first is sent: of a value that is refused nothing may be in the topic.
        parts = list(self._parts(topic, key, value, format, partition))
        sent = [sender.send(topic, *part, *rest) for part in parts]
        return sent[0] if len(sent) == 1 else SplitReceipt(parts=sent)

    def produce_table(
        self,
        topic: str,
        rows: Any,
        *,
        value: str | None = None,
        key: str | None = None,
        partition: str | None = None,
        timestamp: str | None = None,
        format: str | Format | None = None,
    ) -> int:
        """Send a table, one record for each row; return how many there were.

        `rows` is a table (Arrow, pandas, polars, duckdb) or an iterable of mappings. `value`, `key`,
        `partition` and `timestamp` name columns. Without `value` the whole row is the value, in the
        given format, else the producer's, else JSON. `flush` raises for what was not delivered. To send
        a table as a few large values instead, give it to `produce`.
        """
        columns = Columns(value, key, partition, timestamp)
        batches = self._batches(topic, rows, columns, format)
        return sum(self._sender.send_rows(topic, batch) for batch in batches)

    def poll(self, timeout: float = 0.0) -> int:
        """Serve the callbacks that wait; `produce` and `flush` do it by themselves."""
        served = self._sender.serve_now(timeout)
        self._sender.callbacks.raise_kept()
        return served

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything is delivered; raise when something was not."""
        seconds = -1 if timeout is None else timeout
        self._sender.raise_left(self._sender.drain(seconds), seconds)

    def raise_failures(self) -> None:
        """Raise when deliveries failed that were not reported yet: their number, the first reason."""
        self._sender.failures.raise_unreported()

    # -- transactions

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """Run a block as one transaction: committed at its end, aborted when it raises."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            # A producer that was fenced cannot even abort; what went wrong first is what counts.
            with suppress(PenstockError):
                self.abort_transaction()
            raise

    def init_transactions(self) -> None:
        """Take over from earlier producers with the same transactional.id: fence them, abort their work.

        The first `begin_transaction` does it by itself. To copy from topic to topic, call it before
        reading: offsets in a transaction that a crash left open block the group's readers, until this
        or until transaction.timeout.ms has passed.
        """
        self._transactions.init(self.timeout)

    def begin_transaction(self) -> None:
        """Begin. The first time this fences every earlier producer with the same transactional.id."""
        self._transactions.begin(self.timeout)

    def send_offsets_to_transaction(
        self, consumer: Consumer, offsets: Mapping[Partition, int] | None = None
    ) -> None:
        """Make a consumer's offsets part of the transaction: the given ones, or all it has read."""
        where = consumer.position() if offsets is None else offsets
        self._transactions.send_offsets(where, consumer.group_metadata(), self.timeout)

    def commit_transaction(self) -> None:
        """Deliver what waits and commit: from now on others see it."""
        self._transactions.commit(self.timeout)

    def abort_transaction(self) -> None:
        """Discard everything since the beginning of the transaction."""
        self._transactions.abort(self.timeout)
        # They were discarded on purpose.
        self._sender.failures.forget()

    # -- values into messages

    def _parts(
        self,
        topic: str,
        key: Any,
        value: Any,
        format: str | Format | None,
        partition: int | None,
    ) -> Iterator[tuple[Any, Any, int]]:
        """Yield the messages that a value becomes: key, value, and the partition where one is chosen."""
        wanted = self._format if format is None else find_format(format)
        key = self._key(topic, key)
        partition = self._partitions.choose(topic, key, partition_of(partition), self.timeout)
        if wanted is None or value is None:
            yield key, value, partition
            return
        for piece in self.sizes.pieces(value, lambda part: wanted.encode(part, topic)):
            yield key, piece, partition

    def _batches(
        self, topic: str, rows: Any, columns: Columns, format: str | Format | None
    ) -> Iterator[Batch]:
        """Return the messages that a table becomes, some thousand at a time."""
        wanted = self._format if format is None else find_format(format)
        if columns.value is None and wanted is None:
            wanted = find_format("json")
        encode = None if wanted is None else lambda one: wanted.encode(one, topic)
        batches = columns.batches(rows, encode, lambda key: self._key(topic, key))
        if not self._partitions.is_chosen_here:
            return batches
        choose = self._partitions.choose
        return (
            [(v, k, choose(topic, k, place, self.timeout), moment) for v, k, place, moment in batch]
            for batch in batches
        )

    def _key(self, topic: str, key: Any) -> Any:
        if key is None or self._key_format is None:
            return key if type(key) in TAKEN else key_of(key)
        return self._key_format.encode(key, topic)
