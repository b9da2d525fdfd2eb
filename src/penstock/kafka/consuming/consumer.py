"""Reading records, by group (subscribe) or by hand (assign), and committing how far they were read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition

from penstock.config import ConnectionLike
from penstock.errors import NoMessageError, PenstockError, WakeupError
from penstock.formats import Format
from penstock.kafka.consuming.buffer import Buffer
from penstock.kafka.consuming.consumer_client import TIMEOUT, ConsumerClient
from penstock.kafka.consuming.consumer_offsets import ConsumerOffsets
from penstock.kafka.consuming.decoding import Decoder, mapping_of, table_maker
from penstock.kafka.consuming.membership import Membership, OnAssigned, OnRevoked, Rebalance
from penstock.kafka.consuming.poller import Poller, at_least_one, deadline_of
from penstock.kafka.consuming.queues import Queues, Router
from penstock.kafka.handle import OnError, Partition
from penstock.kafka.partitions import OffsetsLike, aligned
from penstock.record import Record

if TYPE_CHECKING:
    import pyarrow as pa

OnCommit = Callable[["PenstockError | None", dict[Partition, int]], None]
"""Called with every commit that was sent without waiting: the error or None, and the offsets."""

_MAX_RECORDS = 1000


class Consumer:
    """Read records from topics.

    The group is the one given, or the connection's; without one the consumer can only `assign`.
    Nothing is committed by itself unless `enable.auto.commit` says so. `timeout` is how many seconds a
    poll waits; it can be set. All methods are for one thread, but for `wakeup`.

    Examples
    --------
    ::

        with Consumer(connection, group="readers") as consumer:
            consumer.subscribe("trades")
            for record in consumer:
                print(record.offset, record.value)
                consumer.commit(record)
    """

    def __init__(
        self,
        connection: ConnectionLike,
        group: str | None = None,
        *,
        format: str | Format | None = None,
        key_format: str | Format | None = None,
        timeout: float = 1.0,
        on_error: OnError | None = None,
        on_commit: OnCommit | None = None,
        _reads_ahead: bool = False,
        **settings: Any,
    ) -> None:
        self.timeout = timeout
        self._on_error = on_error
        self._on_commit = on_commit
        self._router: Router | None = None
        self._decoder = Decoder(format, key_format)
        self._client = ConsumerClient(
            connection,
            group,
            settings,
            on_error=self._report_error,
            on_committed=self._report_commit,
            reads_ahead=_reads_ahead,
        )
        self.connection = self._client.connection
        self.group = self._client.group
        self._buffer = Buffer(self._client)
        self._poller = Poller(self._client, self._buffer)
        self._membership = Membership(self._client, self._buffer)
        self._offsets = ConsumerOffsets(self._client, self._buffer, self._membership)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the group at once and close the connections."""
        try:
            self._buffer.store_delivered()
        finally:
            self._client.close()
        self._client.callbacks.raise_kept()

    def wakeup(self) -> None:
        """End the wait of another thread that polls: there it raises `WakeupError`.

        Where none waits, the next poll ends at once. This is the one method for other threads.
        """
        self._poller.wakeup()

    def setting(self, key: str, default: Any = None) -> Any:
        """Return one of the settings that the consumer was made with, by librdkafka's name."""
        return self._client.handle.get(key, default)

    # -- what is read

    def subscribe(
        self,
        topics: str | re.Pattern[str] | Iterable[str],
        on_assigned: OnAssigned | None = None,
        on_revoked: OnRevoked | None = None,
        on_lost: OnRevoked | None = None,
    ) -> None:
        """Share topics with the other members of the group; replace an earlier subscription.

        A pattern is a compiled one, which must match a name as a whole, or a text that starts with
        '^'. The callbacks get this consumer and the partitions; `on_assigned` may return offsets to
        begin at; `on_revoked` may commit; `on_lost` is called when that would be too late.
        """
        rebalance = Rebalance(
            consumer=self,
            client=self._client,
            buffer=self._buffer,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
            # A lost partition is a revoked one for those who do not ask for the difference.
            on_lost=on_lost or on_revoked,
        )
        self._membership.subscribe(topics, rebalance)

    def unsubscribe(self) -> None:
        """Read nothing more: end a subscription, and an assignment by hand too."""
        self._membership.unsubscribe()

    @property
    def subscription(self) -> list[str]:
        """Return the topics of the subscription; patterns start with '^'."""
        return list(self._membership.subscription)

    def assign(
        self, topics: Mapping[Partition, int] | Any, partitions: Any = None, offsets: Any = None
    ) -> None:
        """Read exactly these partitions: a mapping to offsets, or three values or lists.

        ::

            consumer.assign({("trades", 0): 3000})
            consumer.assign("trades", 0, 3000)
            consumer.assign(["trades", "trades"], [0, 1], [3000, 0])
        """
        given = isinstance(topics, Mapping)
        self._membership.assign(topics if given else aligned(topics, partitions, offsets))

    def unassign(self) -> None:
        """Return the partitions, whether they came by `assign` or by `subscribe`."""
        self._membership.unassign()

    @property
    def assignment(self) -> set[Partition]:
        """Return the partitions that this consumer reads now."""
        return set(self._membership.assigned_at())

    @property
    def assigned_at(self) -> dict[Partition, int]:
        """Return the partitions that this consumer reads now, with the offsets of the assignment.

        -1000 where none was given: reading begins where the group committed, else as auto.offset.reset
        says.
        """
        return self._membership.assigned_at()

    @property
    def at_end(self) -> set[Partition]:
        """Return the partitions in which every record so far has been delivered."""
        ended = self._buffer.ended
        return ended - set(self._buffer.starts()) if ended else set()

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions, and stay in the group."""
        self._membership.pause(partitions)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch from these partitions again."""
        self._membership.resume(partitions)

    @property
    def member_id(self) -> str | None:
        """Return this member's id in the group; None until it has joined."""
        member: str | None = self._client.call("reading the member id", lambda raw: raw.memberid())
        return member or None

    def group_metadata(self) -> Any:
        """Return what a transaction needs to commit this consumer's offsets."""
        self._client.require_group("a transaction's offsets")
        return self._client.raw.consumer_group_metadata()

    # -- records

    def poll(
        self, timeout: float | None = None, format: str | Format | None = None
    ) -> Record | None:
        """Return the next record, or None when none came in time; a negative time-out waits forever."""
        records = self.poll_batch(1, timeout, format)
        return records[0] if records else None

    def poll_batch(
        self,
        max_records: int | None = None,
        timeout: float | None = None,
        format: str | Format | None = None,
    ) -> list[Record]:
        """Return up to `max_records` records (max.poll.records, else 1000), or fewer when the time is up.

        A value that does not decode is an `error` of its record.
        """
        decode = self._decoder.using(format)
        return decode(self._poller.fetch(*self._limits(max_records, timeout)))

    def poll_table(self, max_records: int = 10_000, timeout: float | None = None) -> pa.Table:
        """Return up to `max_records` records as one Arrow table.

        Columns: key, value, topic, partition, offset, timestamp, headers.
        """
        make = table_maker()
        return make(self._poller.fetch(*self._limits(max_records, timeout)))

    def poll_mapping(
        self,
        max_records: int | None = None,
        timeout: float | None = None,
        format: str | Format | None = None,
    ) -> dict[Any, Any]:
        """Return a batch as key -> value; of records with the same key the last one counts.

        One record that does not decode is raised: a mapping has no place for its error.
        """
        return mapping_of(self.poll_batch(max_records, timeout, format))

    def poll_value(self, timeout: float | None = None) -> bytes | None:
        """Return the bytes of the next record's value, as they are; None when none came in time."""
        messages = self._poller.fetch(*self._limits(1, timeout))
        return messages[0].value() if messages else None

    def read(self, timeout: float = -1, format: str | Format | None = None) -> Record:
        """Return the next record; raise `NoMessageError` when none came in time; -1 waits forever."""
        record = self.poll(timeout, format)
        if record is None:
            raise NoMessageError(f"no message came within {timeout:g} s")
        return record

    def __iter__(self) -> Iterator[Record]:
        """Yield records forever; `wakeup` ends the loop."""
        while True:
            try:
                record = self.poll()
            except WakeupError:
                return
            if record is not None:
                yield record

    @property
    def queues(self) -> Queues:
        """Return the main queue, the consumer's queue and those of its partitions.

        Once they were requested, all records and events of the consumer pass through them.
        """
        if self._router is None:
            self._router = Router(self._poller, self._buffer, self._membership)
            self._buffer.router = self._router
        return self._router.queues

    # -- offsets

    def commit(self, what: OffsetsLike | None = None) -> dict[Partition, int]:
        """Commit and wait: the offset after a record, given offsets, or after all delivered records.

        A coordinator that starts, moves or does not answer is waited for, up to a minute. Return what
        was committed; raise where nothing was delivered since the last time.
        """
        return self._offsets.commit(what)

    def commit_async(self, what: OffsetsLike | None = None) -> None:
        """Commit without waiting; the answer comes to `on_commit` with a later poll."""
        self._offsets.commit_async(what)

    def store_offsets(self, what: OffsetsLike | None = None) -> None:
        """Choose the offsets of the next commit: after a record, given ones, or all delivered.

        For `enable.auto.offset.store=false`: librdkafka then stores nothing by itself.
        """
        self._offsets.store(what)

    def seek(self, offsets: Mapping[Partition, int]) -> None:
        """Continue at these offsets, in partitions that are being read."""
        self._offsets.seek(offsets)

    def position(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """Return the offset after the last delivered record; partitions without one are left out."""
        return self._offsets.position(partitions)

    def committed(
        self, partitions: Iterable[Partition] | None = None, timeout: float = TIMEOUT
    ) -> dict[Partition, int]:
        """Return what the group committed; partitions without a committed offset are left out."""
        return self._offsets.committed(partitions, timeout)

    def watermarks(
        self, partitions: Iterable[Partition] | None = None, timeout: float = TIMEOUT
    ) -> dict[Partition, tuple[int, int]]:
        """Return the first offset, and that of the next record to be written, asked of the broker."""
        return self._offsets.watermarks(partitions, timeout)

    def cached_watermarks(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, tuple[int, int]]:
        """Return the same as of the last fetch, without asking; -1001 where nothing is known."""
        return self._offsets.cached_watermarks(partitions)

    def offsets_for_times(
        self, times: Mapping[Partition, int], timeout: float = TIMEOUT
    ) -> dict[Partition, int]:
        """Return the first offset at or after a time (milliseconds since 1970); -1 where none is."""
        return self._offsets.at_times(times, timeout)

    def offset_info(self, topics: Any = None, partitions: Any = None) -> pa.Table:
        """Return where this consumer is, as a table, for the given partitions or all that it reads.

        Columns: topic, partition, minOffset, maxOffset, offsetPosition (the next one to read),
        offsetCommitted; -1001 where there is none yet.
        """
        asked = self._asked(topics, partitions)
        return self._offsets.table(asked, self.position(asked))

    # -- for the twin, and from librdkafka

    def _asked(self, topics: Any, partitions: Any) -> list[Partition]:
        """Return the partitions that a caller means: those that are named, or all that are read."""
        if partitions is None:
            names = {topics} if isinstance(topics, str) else topics
            return sorted(w for w in self.assignment if names is None or w[0] in names)
        return list(aligned(topics, partitions, None))

    def _limits(self, max_records: int | None, timeout: float | None) -> tuple[int, float]:
        """Return how many records a poll returns at most, and its deadline."""
        if max_records is None:
            max_records = self.connection.max_poll_records or _MAX_RECORDS
        wait = self.timeout if timeout is None else timeout
        return at_least_one(max_records), deadline_of(wait)

    def _report_error(self, level: str, name: str, message: str) -> None:
        if self._router is not None:
            self._router.failed(name, message)
        if self._on_error is not None:
            self._on_error(level, name, message)

    def _report_commit(self, error: PenstockError | None, places: list[TopicPartition]) -> None:
        if self._on_commit is not None:
            offsets = {(place.topic, place.partition): place.offset for place in places}
            self._client.callbacks.run(self._on_commit, error, offsets)
        if self._router is not None:
            self._router.committed(error, places)
