"""Where a consumer is in its partitions: positions, committed offsets, and the ends of the log."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition

from penstock.errors import ConfigError, missing_extra
from penstock.kafka.bounded import MARGIN, settled
from penstock.kafka.consuming.buffer import Buffer
from penstock.kafka.consuming.consumer_client import TIMEOUT, ConsumerClient
from penstock.kafka.consuming.membership import Membership
from penstock.kafka.handle import Partition
from penstock.kafka.partitions import NO_OFFSET, OffsetsLike, offsets_of, places_of, raise_errors_of
from penstock.retry import retry

if TYPE_CHECKING:
    import pyarrow as pa

_SETTLING, _PAUSE = 1.0, 0.005
# A commit is tried for this long while the group's coordinator starts or moves, as after a restart, or
# does not answer.
_COMMITTING, _BETWEEN = 60.0, 0.1
_MOVING = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._WAIT_COORD,
    }
)
_UNANSWERED = frozenset(
    {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT}
)


class ConsumerOffsets:
    """Reads and changes the offsets of one consumer and its group."""

    def __init__(self, client: ConsumerClient, buffer: Buffer, membership: Membership) -> None:
        self._client = client
        self._buffer = buffer
        self._membership = membership

    # -- commits

    def commit(self, what: OffsetsLike | None) -> dict[Partition, int]:
        """Commit and wait; return what was committed."""
        named = self._to_commit(what)
        if named is None:
            return {}
        deadline = time.monotonic() + _COMMITTING
        with self._client.translated(self._committing):
            sent = settled(
                lambda: raise_errors_of(self._send_commit(named, deadline)),
                _COMMITTING,
                _MOVING | _UNANSWERED,
                _BETWEEN,
            )
        return _known(sent)

    def _send_commit(self, named: dict[str, Any], deadline: float) -> list[TopicPartition]:
        left = max(MARGIN, deadline - time.monotonic())
        send = partial(self._client.raw.commit, **named, asynchronous=False)
        return self._client.bounded(self._committing, left, send) or []

    def commit_async(self, what: OffsetsLike | None) -> None:
        """Commit without waiting."""
        if what is None and self._client.stores_offsets:
            # librdkafka would look only when it sends, and take records that were read in between.
            what = self.position() or None
        named = self._to_commit(what)
        if named is not None:
            with self._client.translated(self._committing):
                raise_errors_of(self._client.raw.commit(**named, asynchronous=True))

    def store(self, what: OffsetsLike | None) -> None:
        """Store what the next commit takes."""
        if self._client.stores_offsets:
            raise ConfigError(
                "storing offsets needs a consumer that does not do it by itself: "
                "give enable_auto_offset_store=False"
            )
        places = offsets_of(self.position() if what is None else what)
        with self._client.translated("storing offsets"):
            self._client.raw.store_offsets(offsets=places)

    def _to_commit(self, what: OffsetsLike | None) -> dict[str, Any] | None:
        """Return the arguments of librdkafka's commit; None where there is nothing to commit."""
        self._client.require_group("commits")
        self._buffer.store_delivered()
        if (
            what is None
            and self._client.stores_offsets
            and not self._client.tracks_delivery
            and self._buffer.starts()
        ):
            # librdkafka would take along what waits here.
            what = self.position()
        if what == {}:
            return None
        return {} if what is None else {"offsets": offsets_of(what)}

    @property
    def _committing(self) -> str:
        return f"committing for group {self._client.group!r}"

    # -- positions

    def seek(self, offsets: Mapping[Partition, int]) -> None:
        """Continue at these offsets."""
        self._buffer.store_delivered()
        for place in offsets_of(offsets):
            with self._client.translated(f"seeking in {place.topic}[{place.partition}]"):
                self._seek(place)
        self._buffer.drop(offsets)

    def _seek(self, place: TopicPartition) -> None:
        def again(error: Exception) -> float | None:
            # A partition that was assigned a moment ago is not yet being read.
            early = isinstance(error, KafkaException) and error.args[0].code() == KafkaError._STATE
            where = place.topic, place.partition
            return _PAUSE if early and where in self._membership.assigned_at() else None

        def seek() -> None:
            self._client.bounded("seeking", TIMEOUT, lambda: self._client.raw.seek(place))

        retry(seek, again, within=_SETTLING)

    def position(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """Return the offset after the last delivered record, where there is one."""
        places = self._places(partitions)
        positions = _known(self._client.call("reading positions", lambda raw: raw.position(places)))
        return positions | {
            where: at for where, at in self._buffer.starts().items() if where in positions
        }

    def committed(
        self, partitions: Iterable[Partition] | None = None, timeout: float = TIMEOUT
    ) -> dict[Partition, int]:
        """Return the offsets that the group committed, where there are any."""
        self._client.require_group("committed offsets")
        places = self._places(partitions)

        def ask(raw: Any) -> list[TopicPartition]:
            return settled(
                lambda: raise_errors_of(raw.committed(places, timeout=timeout)), timeout, _MOVING
            )

        doing = f"reading the offsets of group {self._client.group!r}"
        return _known(self._client.call(doing, ask, timeout + MARGIN))

    # -- the log

    def watermarks(
        self, partitions: Iterable[Partition] | None = None, timeout: float = TIMEOUT
    ) -> dict[Partition, tuple[int, int]]:
        """Return the first and the next offset of partitions, asked of the brokers."""
        wanted = [(place.topic, place.partition) for place in self._places(partitions)]
        # Two requests for all partitions; librdkafka's own call makes some for each.
        low = self.at_times(dict.fromkeys(wanted, OFFSET_BEGINNING), timeout)
        high = self.at_times(dict.fromkeys(wanted, OFFSET_END), timeout)
        return {where: (low[where], high[where]) for where in wanted}

    def cached_watermarks(
        self, partitions: Iterable[Partition] | None
    ) -> dict[Partition, tuple[int, int]]:
        """Return the same as of the last fetch."""
        places = self._places(partitions)
        with self._client.translated("reading cached watermarks"):
            ends = [self._client.raw.get_watermark_offsets(each, cached=True) for each in places]
        return {(p.topic, p.partition): end for p, end in zip(places, ends, strict=True)}

    def at_times(self, times: Mapping[Partition, int], timeout: float) -> dict[Partition, int]:
        """Return the first offset at or after a time, for each partition."""
        asked = offsets_of(times)
        offsets = self._client.call(
            "looking up offsets",
            lambda raw: raise_errors_of(raw.offsets_for_times(asked, timeout=timeout)),
            timeout + MARGIN,
        )
        return {(place.topic, place.partition): place.offset for place in offsets}

    def table(self, asked: list[Partition], positions: Mapping[Partition, int]) -> pa.Table:
        """Return the table of `Consumer.offset_info`, with positions that are known already."""
        try:
            from penstock.kafka.consuming.arrow_records import offset_table  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as missing:
            raise missing_extra(missing, "offset information as a table") from missing
        ends = self.watermarks(asked)
        committed = {} if self._client.group is None else self.committed(asked)
        return offset_table(
            [
                {
                    "topic": where[0],
                    "partition": where[1],
                    "minOffset": ends[where][0],
                    "maxOffset": ends[where][1],
                    "offsetPosition": positions.get(where, NO_OFFSET),
                    "offsetCommitted": committed.get(where, NO_OFFSET),
                }
                for where in asked
            ]
        )

    def _places(self, partitions: Iterable[Partition] | None) -> list[TopicPartition]:
        return places_of(self._membership.assigned_at() if partitions is None else partitions)


def _known(places: list[TopicPartition]) -> dict[Partition, int]:
    return {(place.topic, place.partition): place.offset for place in places if place.offset >= 0}
