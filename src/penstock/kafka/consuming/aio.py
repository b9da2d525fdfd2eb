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
from penstock.kafka.consuming.polling import mapping_of
from penstock.kafka.handle import Partition
from penstock.kafka.places import OffsetsLike
from penstock.kafka.pump import finish
from penstock.record import Record

if TYPE_CHECKING:
    import pyarrow as pa

# Looks at librdkafka begin this close together and, while nothing comes, end this far apart.
_SOON, _LATE = 0.001, 0.02
# Records that are taken from librdkafka before somebody asks for them, so that one costs little.
_AHEAD = 500


class _ReadsAhead(Consumer):
    reads_ahead = True


class AsyncConsumer:
    """Read records from coroutines. Everything is as with `Consumer`, which `sync` is.

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
        self.sync: Consumer = _ReadsAhead(connection, group, **options)
        self._busy = asyncio.Lock()

    async def __aenter__(self) -> AsyncConsumer:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the group at once and let go of the connections."""
        async with self._busy:
            await finish(self.sync.close)

    @property
    def connection(self) -> Connection:
        """The connection."""
        return self.sync.connection

    @property
    def timeout_ms(self) -> int:
        """How long a poll waits."""
        return self.sync.timeout_ms

    @timeout_ms.setter
    def timeout_ms(self, milliseconds: int) -> None:
        self.sync.timeout_ms = milliseconds

    @property
    def member_id(self) -> str | None:
        """This member's name in the group; None until the group has taken it in."""
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
        """Give the partitions back."""
        self.sync.unassign()

    @property
    def subscription(self) -> list[str]:
        """What was subscribed to."""
        return self.sync.subscription

    @property
    def assignment(self) -> set[Partition]:
        """The partitions that this consumer reads now."""
        return self.sync.assignment

    @property
    def assigned_at(self) -> dict[Partition, int]:
        """As `Consumer.assigned_at`."""
        return self.sync.assigned_at

    @property
    def at_end(self) -> set[Partition]:
        """The partitions in which every record so far has been handed out."""
        return self.sync.at_end

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions."""
        self.sync.pause(partitions)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch from these partitions again."""
        self.sync.resume(partitions)

    # -- records

    async def poll(
        self, timeout_ms: int | None = None, format: str | Format | None = None
    ) -> Record | None:
        """The next record, or None when none came in time."""
        records = await self.poll_batch(1, timeout_ms, format)
        return records[0] if records else None

    async def poll_batch(
        self,
        most: int | None = None,
        timeout_ms: int | None = None,
        format: str | Format | None = None,
    ) -> list[Record]:
        """Up to `most` records; fewer, or none, when the time is up."""
        read = self.sync.reader(format)
        return read(await self._fetch(most, timeout_ms))

    async def poll_table(self, most: int = 10_000, timeout_ms: int | None = None) -> pa.Table:
        """Up to `most` records as one Arrow table."""
        make = self.sync.table_maker()
        return make(await self._fetch(most, timeout_ms))

    async def poll_mapping(
        self,
        most: int | None = None,
        timeout_ms: int | None = None,
        format: str | Format | None = None,
    ) -> dict[Any, Any]:
        """A batch as key -> value."""
        return mapping_of(await self.poll_batch(most, timeout_ms, format))

    async def poll_value(self, timeout_ms: int | None = None) -> bytes | None:
        """The bytes of the next record's value; None when none came in time."""
        messages = await self._fetch(1, timeout_ms)
        return messages[0].value() if messages else None

    async def read(self, timeout_ms: int = -1, format: str | Format | None = None) -> Record:
        """The next record, or `NoMessageError` when none came in time; -1 waits for ever."""
        while True:
            wait = timeout_ms if timeout_ms >= 0 else None
            if record := await self.poll(wait, format):
                return record
            if timeout_ms >= 0:
                raise NoMessageError(f"no message came within {timeout_ms} ms")

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Records for ever; `wakeup` ends the loop."""
        while True:
            try:
                record = await self.poll()
            except WakeupError:
                return
            if record is not None:
                yield record

    # -- places

    async def commit(self, what: OffsetsLike | None = None) -> dict[Partition, int]:
        """Commit and wait: behind a record, given offsets, or behind everything that was handed out."""
        async with self._busy:
            return await finish(self.sync.commit, what)

    def commit_async(self, what: OffsetsLike | None = None) -> None:
        """Commit without waiting; the answer comes to `on_commit` with a later poll."""
        self.sync.commit_async(what)

    def store_offsets(self, what: OffsetsLike | None = None) -> None:
        """Choose what the next commit takes; for `enable.auto.offset.store=false`."""
        self.sync.store_offsets(what)

    def seek(self, offsets: Mapping[Partition, int]) -> None:
        """Go on reading at these offsets."""
        self.sync.seek(offsets)

    def position(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """The offset after the last record handed out."""
        return self.sync.position(partitions)

    async def committed(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, int]:
        """What the group committed."""
        async with self._busy:
            return await finish(self.sync.committed, partitions)

    async def watermarks(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, tuple[int, int]]:
        """The first offset, and that of the next record to be written."""
        async with self._busy:
            return await finish(self.sync.watermarks, partitions)

    async def offsets_for_times(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        """The first offset at or after a time (milliseconds); -1 where no record is that young."""
        async with self._busy:
            return await finish(self.sync.offsets_for_times, times)

    async def offset_info(self, topics: Any = None, partitions: Any = None) -> pa.Table:
        """Where this consumer is, as a table; see `Consumer.offset_info`."""
        async with self._busy:
            asked = self.sync.asked(topics, partitions)
            return await finish(self.sync.offsets_table, asked, self.position(asked))

    # -- how records are gathered

    async def _fetch(self, most: int | None, timeout_ms: int | None) -> list[Message]:
        wanted, deadline = self.sync.how_many(most), self.sync.deadline(timeout_ms)
        pause = _SOON
        self.sync.raise_if_woken()
        while (lacking := wanted - len(self.sync.ahead.messages)) > 0:
            async with self._busy:
                self.sync.store_handed_out()
                came = self.sync.gather(max(_AHEAD, lacking), 0)
            if time.monotonic() >= deadline or came >= lacking:
                break
            pause = _SOON if came else min(2 * pause, _LATE)
            await asyncio.sleep(pause)
        return self.sync.hand_out(wanted)
