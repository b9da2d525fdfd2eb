"""Writing records: a full queue slows the caller down, and no failed delivery goes unseen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from penstock.config import ConnectionLike
from penstock.errors import PenstockError
from penstock.formats import Format, find_format
from penstock.kafka.consuming.consumer import Consumer
from penstock.kafka.handle import Partition
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
from penstock.kafka.producing.sending import RARE, SERVE_AFTER, Sending
from penstock.kafka.producing.splitting import Sizes
from penstock.kafka.producing.tables import Batch, Columns
from penstock.kafka.producing.transactions import Transactions

_LAST_CHANCE = 5.0


class Producer(Sending):
    """Write records to topics.

    `produce` returns at once; while the local queue is full it waits, at most `queue_timeout`
    seconds. `flush` waits for the deliveries and raises when one failed and nobody was told.
    `timeout_ms` is how long a question to the cluster may take, transactions included; it can be set.

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
        **options: Any,
    ) -> None:
        super().__init__(connection, **options)
        self.timeout_ms: int = self._handle.get("request.timeout.ms", 30_000)
        self.sizes = Sizes()
        self._format = None if format is None else find_format(format)
        self._key_format = None if key_format is None else find_format(key_format)
        self._partitioner = partitioner
        self._partitions = Partitions(self._client, self._handle)
        self._transactions = Transactions(self._client, self._handle)
        # Whether a record can go straight to librdkafka.
        self._plain = not (format or key_format or partitioner)

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *_exc: object) -> None:
        if exc_type is None:
            self.close()
        else:
            # What was handed over is still delivered, but must not hide the error on its way up.
            with suppress(PenstockError):
                self.emptied(_LAST_CHANCE)
            self.end()

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
        """Hand one value over; wait for what comes back, await it, or let it go.

        Without a format a value is bytes or text. A vector or table that is larger than
        `sizes.message` goes out as several records. The same key always goes to the same partition; a
        key is bytes, text or a whole number (sent as text). A timestamp is a time, or milliseconds
        since 1970 and at least 1: librdkafka takes 0 for "now".
        """
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
            receipt: Receipt = self._receipt()
            try:
                place = ANY_PARTITION if partition is None else partition
                self._produce(topic, value, key, place, receipt)
            except RARE:
                return self.send(topic, key, value, partition)
            self._accepted = accepted = self._accepted + 1
            if not accepted & SERVE_AFTER:
                self.serve()
            return receipt
        rest = (headers_of(headers), timestamp, on_delivery)
        parts = self.parts(topic, key, value, format, partition)
        sent = [self.send(topic, *part, *rest) for part in parts]
        return sent[0] if len(sent) == 1 else SplitReceipt(parts=sent)

    def parts(
        self,
        topic: str,
        key: Any,
        value: Any,
        format: str | Format | None,
        partition: int | None,
    ) -> Iterator[tuple[Any, Any, int]]:
        """The messages that a value becomes: key, value, and the partition where one is chosen here."""
        wanted = self._format if format is None else find_format(format)
        key = self._key(topic, key)
        partition = self._chosen(topic, key, partition_of(partition))
        if wanted is None or value is None:
            yield key, value, partition
            return
        for piece in self.sizes.pieces(value, lambda part: wanted.encode(part, topic)):
            yield key, piece, partition

    def _key(self, topic: str, key: Any) -> Any:
        if key is None or self._key_format is None:
            return key if type(key) in TAKEN else key_of(key)
        return self._key_format.encode(key, topic)

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
        """Hand a table over, one record for each row; how many there were.

        `rows` is a table (Arrow, pandas, polars, duckdb) or an iterable of mappings. `value`, `key`,
        `partition` and `timestamp` name columns. Without `value` the whole row is the value, in the
        given format, else the producer's, else JSON. `flush` tells of what was not delivered. To send a
        table as a few large values instead, give it to `produce`.
        """
        columns = Columns(value, key, partition, timestamp)
        batches = self.batches_of(topic, rows, columns, format)
        return sum(self.send_rows(topic, batch) for batch in batches)

    def batches_of(
        self, topic: str, rows: Any, columns: Columns, format: str | Format | None
    ) -> Iterator[Batch]:
        """The messages that a table becomes, some thousand at a time."""
        wanted = self._format if format is None else find_format(format)
        if columns.value is None and wanted is None:
            wanted = find_format("json")
        encode = None if wanted is None else lambda one: wanted.encode(one, topic)
        batches = columns.batches(rows, encode, lambda key: self._key(topic, key))
        return (self._placed(topic, batch) for batch in batches)

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has, asked of the cluster where it is not known yet."""
        return self._partitions.count(topic, self.timeout_ms / 1000)

    @property
    def chooses(self) -> bool:
        """Whether partitions are chosen here, by the user's own function."""
        return self._partitioner is not None

    def _placed(self, topic: str, batch: Batch) -> Batch:
        if self._partitioner is None:
            return batch
        return [(v, k, self._chosen(topic, k, place), moment) for v, k, place, moment in batch]

    def _chosen(self, topic: str, key: Any, partition: int) -> int:
        if partition != ANY_PARTITION or self._partitioner is None:
            return partition
        return self._partitions.choose(self._partitioner, topic, key, self.timeout_ms / 1000)

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

        The first `begin_transaction` does it by itself. Who copies from topic to topic calls it before
        reading: offsets in a transaction that a crash left open hold the group's readers up, until this
        or until transaction.timeout.ms has passed.
        """
        self._transactions.init(self.timeout_ms / 1000)

    def begin_transaction(self) -> None:
        """Begin. The first time this fences every earlier producer with the same transactional.id."""
        self._transactions.begin(self.timeout_ms / 1000)

    def send_offsets_to_transaction(
        self, consumer: Consumer, offsets: Mapping[Partition, int] | None = None
    ) -> None:
        """Make a consumer's place part of the transaction: the given offsets, or all it has read."""
        where = consumer.position() if offsets is None else offsets
        self._transactions.send_offsets(where, consumer.group_metadata(), self.timeout_ms / 1000)

    def commit_transaction(self) -> None:
        """Deliver what waits and commit: from now on others see it."""
        self._transactions.commit(self.timeout_ms / 1000)

    def abort_transaction(self) -> None:
        """Forget everything since the beginning of the transaction."""
        self._transactions.abort(self.timeout_ms / 1000)
        # They were taken back on purpose.
        self.failures.forget()
