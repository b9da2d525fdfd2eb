"""Reading records, by group (subscribe) or by hand (assign), and keeping the place."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition

from penstock.errors import ConfigError, missing_extra
from penstock.kafka.consuming.polling import Polling
from penstock.kafka.handle import Partition
from penstock.kafka.places import (
    NO_OFFSET,
    OffsetsLike,
    aligned,
    offsets_of,
    places_of,
    raise_errors_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

_TIMEOUT = 10.0
_SETTLING, _PAUSE = 1.0, 0.005
# So long a commit is tried while the group's coordinator starts or moves, as after a broker came back.
_COMMITTING, _BETWEEN = 60.0, 0.1
_MOVING = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._WAIT_COORD,
    }
)


class Consumer(Polling):
    """Read records from topics.

    The group is the one given, or the connection's; without one the consumer can only `assign`.
    Nothing is committed by itself unless `enable.auto.commit` says so. `at_end` has the partitions
    in which every record so far has been handed out. `timeout_ms` is how long a poll waits; it can
    be set. All methods are for one thread, but for `wakeup`.

    Examples
    --------
    ::

        with Consumer(connection, group="readers") as consumer:
            consumer.subscribe("trades")
            for record in consumer:
                print(record.offset, record.value)
                consumer.commit(record)
    """

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- commit

    def commit(self, what: OffsetsLike | None = None) -> dict[Partition, int]:
        """Commit and wait: behind a record, given offsets, or behind everything that was handed out.

        A coordinator that starts or moves is waited for, up to a minute. Gives back what was committed.
        Nothing handed out since the last time is an error.
        """
        told = self._commit(what, asynchronous=False)
        return _offsets(told or [])

    def commit_async(self, what: OffsetsLike | None = None) -> None:
        """Commit without waiting; the answer comes to `on_commit` with a later poll."""
        if what is None and self.stores:
            # librdkafka would look only when it sends, and take records that were read in between.
            what = self.position() or None
        self._commit(what, asynchronous=True)

    def store_offsets(self, what: OffsetsLike | None = None) -> None:
        """Choose what the next commit takes: behind a record, given offsets, or all that was handed out.

        For `enable.auto.offset.store=false`: librdkafka then stores nothing by itself.
        """
        if self.stores:
            raise _must_not_store()
        places = offsets_of(self.position() if what is None else what)
        with self._handle.translated("storing offsets"):
            self._client.store_offsets(offsets=places)

    def _commit(self, what: OffsetsLike | None, asynchronous: bool) -> Any:
        self.require_group("commits")
        self.store_handed_out()
        if what is None and self.stores and not self.keeps_place and self.waiting():
            # librdkafka would take along what waits here.
            what = self.position()
        if what == {}:
            return []
        named: dict[str, Any] = {} if what is None else {"offsets": offsets_of(what)}
        deadline = time.monotonic() + (0 if asynchronous else _COMMITTING)
        with self._handle.translated(f"committing for group {self.group!r}"):
            while True:
                try:
                    told = self._client.commit(**named, asynchronous=asynchronous)
                    raise_errors_of(told)
                    return told
                except KafkaException as problem:
                    if problem.args[0].code() not in _MOVING or time.monotonic() > deadline:
                        raise
                time.sleep(_BETWEEN)

    # -- places

    def seek(self, offsets: Mapping[Partition, int]) -> None:
        """Go on reading at these offsets, in partitions that are being read."""
        self.store_handed_out()
        for place in offsets_of(offsets):
            with self._handle.translated(f"seeking in {place.topic}[{place.partition}]"):
                self._seek(place)
        self.forget_waiting(offsets)

    def _seek(self, place: TopicPartition) -> None:
        deadline = time.monotonic() + _SETTLING
        while True:
            try:
                self._client.seek(place)
                return
            except KafkaException as problem:
                # A partition that was assigned a moment ago is not yet being read.
                early = problem.args[0].code() == KafkaError._STATE and place in self._mine()
                if not early or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)

    def _mine(self) -> list[TopicPartition]:
        mine: list[TopicPartition] = self._client.assignment()
        return mine

    def position(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """The offset after the last record handed out; partitions without one are not in the answer."""
        places = self._places(partitions)
        with self._handle.translated("reading positions"):
            found = _offsets(self._client.position(places))
        return found | {where: at for where, at in self.waiting().items() if where in found}

    def committed(
        self, partitions: Iterable[Partition] | None = None, timeout: float = _TIMEOUT
    ) -> dict[Partition, int]:
        """What the group committed; partitions without a committed offset are not in the answer."""
        self.require_group("committed offsets")
        places = self._places(partitions)
        with self._handle.translated(f"reading the offsets of group {self.group!r}"):
            told = self._client.committed(places, timeout=timeout)
            raise_errors_of(told)
            return _offsets(told)

    def watermarks(
        self, partitions: Iterable[Partition] | None = None, timeout: float = _TIMEOUT
    ) -> dict[Partition, tuple[int, int]]:
        """The first offset, and that of the next record to be written, asked of the broker."""
        wanted = list(self.assignment if partitions is None else partitions)
        # Two questions for all partitions; librdkafka's own call asks for each.
        low = self._times(dict.fromkeys(wanted, OFFSET_BEGINNING), timeout)
        high = self._times(dict.fromkeys(wanted, OFFSET_END), timeout)
        return {where: (low[where], high[where]) for where in wanted}

    def cached_watermarks(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, tuple[int, int]]:
        """The same as far as the last fetch told, without asking; -1001 where nothing is known."""
        places = self._places(partitions)
        with self._handle.translated("reading the ends that are known"):
            ends = [self._client.get_watermark_offsets(place, cached=True) for place in places]
        return {(p.topic, p.partition): end for p, end in zip(places, ends, strict=True)}

    def offsets_for_times(
        self, times: Mapping[Partition, int], timeout: float = _TIMEOUT
    ) -> dict[Partition, int]:
        """The first offset at or after a time (milliseconds); -1 where no record is that young."""
        return self._times(times, timeout)

    def _times(self, times: Mapping[Partition, int], timeout: float) -> dict[Partition, int]:
        asked = offsets_of(times)
        with self._handle.translated("looking up offsets"):
            told = self._client.offsets_for_times(asked, timeout=timeout)
            raise_errors_of(told)
        return {(place.topic, place.partition): place.offset for place in told}

    def offset_info(self, topics: Any = None, partitions: Any = None) -> pa.Table:
        """Where this consumer is, as a table, for the given partitions or all that it reads.

        Columns: topic, partition, minOffset, maxOffset, offsetPosition (the next one to read),
        offsetCommitted; -1001 where there is none yet.
        """
        asked = self.asked(topics, partitions)
        return self.offsets_table(asked, self.position(asked))

    def asked(self, topics: Any, partitions: Any) -> list[Partition]:
        """The partitions that somebody means: those that are named, or all that are read."""
        if partitions is None:
            names = {topics} if isinstance(topics, str) else topics
            return sorted(w for w in self.assignment if names is None or w[0] in names)
        return list(aligned(topics, partitions, None))

    def offsets_table(self, asked: list[Partition], positions: Mapping[Partition, int]) -> pa.Table:
        """The table of `offset_info`, with positions that are known already."""
        try:
            from penstock.kafka.consuming.arrow import offset_table  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as missing:
            raise missing_extra(missing, "offset information as a table") from missing
        ends, committed = self.watermarks(asked), self._known(asked)
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

    def _known(self, partitions: list[Partition]) -> dict[Partition, int]:
        return {} if self.group is None else self.committed(partitions)

    def _places(self, partitions: Iterable[Partition] | None) -> list[TopicPartition]:
        return places_of(self.assignment if partitions is None else partitions)


def _must_not_store() -> ConfigError:
    return ConfigError(
        "storing offsets needs a consumer that does not do it by itself: "
        "give enable_auto_offset_store=False"
    )


def _offsets(places: list[TopicPartition]) -> dict[Partition, int]:
    return {(place.topic, place.partition): place.offset for place in places if place.offset >= 0}
