"""The producer for asyncio: the same names and meanings, with `await`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from math import inf
from typing import Any

from penstock.config import Connection, ConnectionLike
from penstock.errors import PenstockError, QueueFullError
from penstock.formats import Format
from penstock.kafka.consuming.async_consumer import AsyncConsumer
from penstock.kafka.handle import Partition
from penstock.kafka.producing.arguments import HeadersLike, headers_of
from penstock.kafka.producing.producer import Producer
from penstock.kafka.producing.receipt import OnDelivery, Receipt, SplitReceipt
from penstock.kafka.producing.record_splitting import Sizes
from penstock.kafka.producing.table_producing import Columns
from penstock.kafka.pump import TICK, finish
from penstock.record import Record


class AsyncProducer:
    """Write records to topics from coroutines. Everything is as with `Producer`.

    librdkafka is polled without waiting on the loop's own thread. A caller that is cancelled while
    the queue is full has sent nothing; one that is cancelled later has sent the record.

    Examples
    --------
    ::

        async with AsyncProducer(connection) as producer:
            delivery = await producer.produce("trades", "A", "1")
            print((await delivery).offset)
    """

    def __init__(
        self, connection: ConnectionLike, *, queue_timeout: float = 30.0, **options: Any
    ) -> None:
        self.queue_timeout = queue_timeout
        self._producer = Producer(connection, queue_timeout=0, **options)
        self._sender = self._producer._sender
        self._partitions = self._producer._partitions

    @property
    def connection(self) -> Connection:
        """Return the connection."""
        return self._producer.connection

    @property
    def sizes(self) -> Sizes:
        """Return how large values may be."""
        return self._producer.sizes

    @property
    def timeout(self) -> float:
        """Return how many seconds a request to the cluster may take."""
        return self._producer.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._producer.timeout = seconds

    @property
    def delivered(self) -> int:
        """Return how many records the brokers have acknowledged."""
        return self._producer.delivered

    @property
    def failed(self) -> int:
        """Return how many deliveries failed."""
        return self._producer.failed

    def __len__(self) -> int:
        """Return how many records are not yet delivered."""
        return len(self._producer)

    async def __aenter__(self) -> AsyncProducer:
        return self

    async def __aexit__(self, exc_type: object, *_exc: object) -> None:
        if exc_type is None:
            await self.close()
        else:
            await finish(self._producer.__exit__, exc_type)

    async def produce(  # noqa: PLR0917 - the order that users know
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
        """Send one value, waiting only while the queue is full. Await the receipt, or ignore it."""
        if self._partitions.is_chosen_here:
            await finish(self._partitions.count, topic, self.timeout)
        rest = headers_of(headers), timestamp, on_delivery
        # All before the first is sent: of a value that is refused nothing may be in the topic.
        parts = list(self._producer._parts(topic, key, value, format, partition))
        sent = [await self._sent(topic, part, rest) for part in parts]
        return sent[0] if len(sent) == 1 else SplitReceipt(parts=sent)

    async def send(self, topic: str, key: Any = None, value: Any = None, **rest: Any) -> Record:
        """Send one value and wait until it is delivered."""
        return await (await self.produce(topic, key, value, **rest))

    async def produce_table(
        self, topic: str, rows: Any, *, format: str | Format | None = None, **columns: str | None
    ) -> int:
        """Send a table, one record for each row; see `Producer.produce_table`."""
        count = 0
        if self._partitions.is_chosen_here:
            await finish(self._partitions.count, topic, self.timeout)
        for batch in self._producer._batches(topic, rows, Columns(**columns), format):
            for value, key, partition, moment in batch:
                await self._sent(topic, (key, value, partition), (None, moment or None, None))
            count += len(batch)
            await asyncio.sleep(0)
        return count

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until everything is delivered; raise when something was not."""
        await self._drain(timeout)
        self._sender.raise_left(len(self._producer), timeout or 0)

    async def close(self) -> None:
        """Deliver what waits. The producer cannot be used again."""
        await self._drain()
        await finish(self._producer.close)

    # -- transactions

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncProducer]:
        """Run a block as one transaction: committed at its end, aborted when it raises."""
        await self._begun()
        try:
            yield self
            await self.commit_transaction()
        except BaseException:
            # A producer that was fenced cannot even abort; what went wrong first is what counts.
            with suppress(PenstockError):
                await self.abort_transaction()
            raise

    async def _begun(self) -> None:
        try:
            await self.begin_transaction()
        except asyncio.CancelledError:
            # The thread went on to the end: what it began has no owner.
            with suppress(PenstockError):
                await self.abort_transaction()
            raise

    async def init_transactions(self) -> None:
        """Take over from earlier producers with the same id; see `Producer.init_transactions`."""
        await finish(self._producer.init_transactions)

    async def begin_transaction(self) -> None:
        """Begin. The first time this fences every earlier producer with the same transactional.id."""
        await finish(self._producer.begin_transaction)

    async def send_offsets_to_transaction(
        self, consumer: AsyncConsumer, offsets: Mapping[Partition, int] | None = None
    ) -> None:
        """Make a consumer's offsets part of the transaction: given ones, or all it delivered."""
        where = consumer.position() if offsets is None else offsets
        await finish(self._producer.send_offsets_to_transaction, consumer.sync, where)

    async def commit_transaction(self) -> None:
        """Deliver what waits and commit: from now on others see it."""
        await self._drain(self.timeout)
        await finish(self._producer.commit_transaction)

    async def abort_transaction(self) -> None:
        """Discard everything since the beginning of the transaction."""
        await finish(self._producer.abort_transaction)

    async def _drain(self, timeout: float | None = None) -> None:
        """Serve callbacks until nothing waits, or the time is up."""
        forever = timeout is None or timeout < 0
        deadline = inf if forever else time.monotonic() + (timeout or 0)
        while len(self._producer) and time.monotonic() <= deadline:
            self._sender.serve_now()
            await asyncio.sleep(TICK)

    async def _sent(
        self, topic: str, part: tuple[Any, Any, int], rest: tuple[Any, Any, Any]
    ) -> Receipt:
        deadline = time.monotonic() + self.queue_timeout
        while True:
            try:
                return self._sender.send(topic, *part, *rest)
            except QueueFullError:
                if time.monotonic() > deadline:
                    raise self._sender.queue_full(self.queue_timeout) from None
            self._sender.serve_now()
            await asyncio.sleep(TICK)
