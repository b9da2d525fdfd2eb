"""The consumer for asyncio: the same names and meanings, with `await` and `async for`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import Message

from penstock.config import Connection, ConnectionLike
from penstock.errors import NoMessageError, WakeupError
from penstock.formats import Format
from penstock.kafka.consuming.consumer import Consumer
from penstock.kafka.consuming.decoding import mapping_of, table_maker
from penstock.kafka.handle import Partition
from penstock.kafka.partitions import OffsetsLike
from penstock.kafka.pump import finish
from penstock.record import Record

if TYPE_CHECKING:
    import pyarrow as pa

# Looks at librdkafka begin this close together and, while nothing comes, end this far apart.
_SOON, _LATE = 0.001, 0.02
# Records that are taken from librdkafka before a caller asks for them, so that one costs little.
_AHEAD = 500


class AsyncConsumer:
    """Read records from coroutines. Everything is as with `Consumer`; `sync` is one.

    librdkafka is polled without waiting on the loop's own thread, and rebalance callbacks (plain
    functions, which get the sync consumer) run there. A caller that is cancelled loses nothing:
    what it had gathered comes with the next poll, and is not committed before.

    Examples
    --------
    ::

        async with AsyncConsumer(connection, group="readers") as consumer:
            consumer.subscribe("trades")
            async for record in consumer:
                print(record.value)
                await consumer.commit(record)
    """

    def __init__(
        self, connection: ConnectionLike, group: str | None = None, **options: Any
    ) -> None:
        self.sync: Consumer = Consumer(connection, group, _reads_ahead=True, **options)
        self._busy = asyncio.Lock()

    async def __aenter__(self) -> AsyncConsumer:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the group at once and close the connections."""
        async with self._busy:
            await finish(self.sync.close)

    @property
    def connection(self) -> Connection:
        """Return the connection."""
        return self.sync.connection

    @property
    def timeout(self) -> float:
        """Return how many seconds a poll waits."""
        return self.sync.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self.sync.timeout = seconds

    @property
    def member_id(self) -> str | None:
        """Return this member's id in the group; None until it has joined."""
        return self.sync.member_id

    def wakeup(self) -> None:
        """End the wait of a task that polls: there it raises `WakeupError`."""
        self.sync.wakeup()

    # -- what is read

    def subscribe(self, topics: Any, **callbacks: Any) -> None:
        """Share topics with the other members of the group; see `Consumer.subscribe`."""
        self.sync.subscribe(topics, **callbacks)

    def unsubscribe(self) -> None:
        """Read nothing more."""
        self.sync.unsubscribe()

    def assign(self, topics: Any, partitions: Any = None, offsets: Any = None) -> None:
        """Read exactly these partitions; see `Consumer.assign`."""
        self.sync.assign(topics, partitions, offsets)

    def unassign(self) -> None:
        """Return the partitions."""
        self.sync.unassign()

    @property
    def subscription(self) -> list[str]:
        """Return the topics of the subscription."""
        return self.sync.subscription

    @property
    def assignment(self) -> set[Partition]:
        """Return the partitions that this consumer reads now."""
        return self.sync.assignment

    @property
    def assigned_at(self) -> dict[Partition, int]:
        """Return the same as `Consumer.assigned_at`."""
        return self.sync.assigned_at

    @property
    def at_end(self) -> set[Partition]:
        """Return the partitions in which every record so far has been delivered."""
        return self.sync.at_end

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions."""
        self.sync.pause(partitions)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch from these partitions again."""
        self.sync.resume(partitions)

    # -- records

    async def poll(
        self, timeout: float | None = None, format: str | Format | None = None
    ) -> Record | None:
        """Return the next record, or None when none came in time."""
        records = await self.poll_batch(1, timeout, format)
        return records[0] if records else None

    async def poll_batch(
        self,
        max_records: int | None = None,
        timeout: float | None = None,
        format: str | Format | None = None,
    ) -> list[Record]:
        """Return up to `max_records` records; fewer, or none, when the time is up."""
        decode = self.sync._decoder.using(format)
        return decode(await self._fetch(max_records, timeout))

    async def poll_table(self, max_records: int = 10_000, timeout: float | None = None) -> pa.Table:
        """Return up to `max_records` records as one Arrow table."""
        make = table_maker()
        return make(await self._fetch(max_records, timeout))

    async def poll_mapping(
        self,
        max_records: int | None = None,
        timeout: float | None = None,
        format: str | Format | None = None,
    ) -> dict[Any, Any]:
        """Return a batch as key -> value."""
        return mapping_of(await self.poll_batch(max_records, timeout, format))

    async def poll_value(self, timeout: float | None = None) -> bytes | None:
        """Return the bytes of the next record's value; None when none came in time."""
        messages = await self._fetch(1, timeout)
        return messages[0].value() if messages else None

    async def read(self, timeout: float = -1, format: str | Format | None = None) -> Record:
        """Return the next record; raise `NoMessageError` when none came in time; -1 waits forever."""
        record = await self.poll(timeout, format)
        if record is None:
            raise NoMessageError(f"no message came within {timeout:g} s")
        return record

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Yield records forever; `wakeup` ends the loop."""
        while True:
            try:
                record = await self.poll()
            except WakeupError:
                return
            if record is not None:
                yield record

    # -- offsets

    async def commit(self, what: OffsetsLike | None = None) -> dict[Partition, int]:
        """Commit and wait: the offset after a record, given offsets, or after all delivered records."""
        async with self._busy:
            return await finish(self.sync.commit, what)

    def commit_async(self, what: OffsetsLike | None = None) -> None:
        """Commit without waiting; the answer comes to `on_commit` with a later poll."""
        self.sync.commit_async(what)

    def store_offsets(self, what: OffsetsLike | None = None) -> None:
        """Choose the offsets of the next commit; for `enable.auto.offset.store=false`."""
        self.sync.store_offsets(what)

    def seek(self, offsets: Mapping[Partition, int]) -> None:
        """Continue at these offsets."""
        self.sync.seek(offsets)

    def position(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """Return the offset after the last delivered record."""
        return self.sync.position(partitions)

    async def committed(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, int]:
        """Return what the group committed."""
        async with self._busy:
            return await finish(self.sync.committed, partitions)

    async def watermarks(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, tuple[int, int]]:
        """Return the first offset, and that of the next record to be written."""
        async with self._busy:
            return await finish(self.sync.watermarks, partitions)

    async def offsets_for_times(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the first offset at or after a time (milliseconds since 1970); -1 where none is."""
        async with self._busy:
            return await finish(self.sync.offsets_for_times, times)

    async def offset_info(self, topics: Any = None, partitions: Any = None) -> pa.Table:
        """Return where this consumer is, as a table; see `Consumer.offset_info`."""
        async with self._busy:
            asked = self.sync._asked(topics, partitions)
            return await finish(self.sync._offsets.table, asked, self.position(asked))

    async def _fetch(self, max_records: int | None, timeout: float | None) -> list[Message]:
        wanted, deadline = self.sync._limits(max_records, timeout)
        poller, buffer, pause = self.sync._poller, self.sync._buffer, _SOON
        poller.raise_if_woken()
        while (lacking := wanted - len(buffer.messages)) > 0:
            async with self._busy:
                buffer.store_delivered()
                came = poller.gather(max(_AHEAD, lacking), 0)
            if time.monotonic() >= deadline or came >= lacking:
                break
            pause = _SOON if came else min(2 * pause, _LATE)
            await asyncio.sleep(pause)
        return buffer.deliver(wanted)
