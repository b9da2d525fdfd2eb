"""Reading records, by group (subscribe) or by hand (assign), and keeping the place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.errors import ConfigError, missing_extra
from penstock.kafka.consuming.polling import Polling
from penstock.kafka.errors import translate
from penstock.kafka.handle import Partition
from penstock.kafka.places import OffsetsLike, aligned, offsets_of, raise_errors_of

if TYPE_CHECKING:
    import pyarrow as pa

_TIMEOUT = 10.0


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

        Gives back what was committed. Nothing handed out since the last time is an error.
        """
        told = self._commit(what, asynchronous=False)
        return _offsets(told or [])

    def commit_async(self, what: OffsetsLike | None = None) -> None:
        """Commit without waiting; the answer comes to `on_commit` with a later poll."""
        if what is None and self._stores:
            # librdkafka would look only when it sends, and take records that were read in between.
            what = self.position() or None
        self._commit(what, asynchronous=True)

    def store_offsets(self, what: OffsetsLike | None = None) -> None:
        """Choose what the next commit takes: behind a record, given offsets, or all that was handed out.

        For `enable.auto.offset.store=false`: librdkafka then stores nothing by itself.
        """
        if self._stores:
            raise must_not_store()
        places = offsets_of(self.position() if what is None else what)
        with self._handle.translated("storing offsets"):
            self._client.store_offsets(offsets=places)

    def store_handed_out(self, offsets: Mapping[Partition, int]) -> None:
        """Store the offsets of records handed out, but for partitions that went away meanwhile."""
        try:
            self._client.store_offsets(offsets=offsets_of(offsets))
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError._STATE:
                raise translate(
                    problem.args[0], "storing offsets", self._handle.brokers, self._handle.seen
                ) from problem

    def _commit(self, what: OffsetsLike | None, asynchronous: bool) -> Any:
        if what is None and self._stores and self.waiting():
            # librdkafka would take along what waits here.
            what = self.position()
        if what == {}:
            return []
        named: dict[str, Any] = {} if what is None else {"offsets": offsets_of(what)}
        with self._handle.translated(f"committing for group {self.group!r}"):
            told = self._client.commit(**named, asynchronous=asynchronous)
            raise_errors_of(told)
            return told

    # -- places

    def seek(self, offsets: Mapping[Partition, int]) -> None:
        """Go on reading at these offsets, in partitions that are being read."""
        for where, offset in offsets.items():
            with self._handle.translated(f"seeking in {where[0]}[{where[1]}]"):
                self._client.seek(TopicPartition(*where, offset))
            self.at_end.discard(where)
        self.ahead.drop(offsets)

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
        places = self._places(partitions)
        with self._handle.translated(f"reading the offsets of group {self.group!r}"):
            told = self._client.committed(places, timeout=timeout)
            raise_errors_of(told)
            return _offsets(told)

    def watermarks(
        self, partitions: Iterable[Partition] | None = None, timeout: float = _TIMEOUT
    ) -> dict[Partition, tuple[int, int]]:
        """The first offset, and that of the next record to be written, asked of the broker."""
        return self._watermarks(partitions, timeout=timeout)

    def cached_watermarks(
        self, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, tuple[int, int]]:
        """The same as far as the last fetch told, without asking; -1001 where nothing is known."""
        return self._watermarks(partitions, cached=True)

    def offsets_for_times(
        self, times: Mapping[Partition, int], timeout: float = _TIMEOUT
    ) -> dict[Partition, int]:
        """The first offset at or after a time (milliseconds); -1 where no record is that young."""
        asked = [TopicPartition(*where, moment) for where, moment in times.items()]
        with self._handle.translated("looking up offsets by time"):
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
        return sorted(self.assignment) if topics is None else _pairs(topics, partitions)

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
                    "offsetPosition": positions.get(where, _NONE),
                    "offsetCommitted": committed.get(where, _NONE),
                }
                for where in asked
            ]
        )

    @property
    def _stores(self) -> bool:
        return bool(self._handle.get("enable.auto.offset.store", True))

    def _known(self, partitions: list[Partition]) -> dict[Partition, int]:
        return {} if self.group is None else self.committed(partitions)

    def _watermarks(
        self, partitions: Iterable[Partition] | None, **how: Any
    ) -> dict[Partition, tuple[int, int]]:
        found = {}
        for place in self._places(partitions):
            with self._handle.translated(
                f"asking for the ends of {place.topic}[{place.partition}]"
            ):
                found[place.topic, place.partition] = self._client.get_watermark_offsets(
                    place, **how
                )
        return found

    def _places(self, partitions: Iterable[Partition] | None) -> list[TopicPartition]:
        wanted = self.assignment if partitions is None else partitions
        return [TopicPartition(*where) for where in wanted]


_NONE = -1001


def must_not_store() -> ConfigError:
    """The error for storing offsets by hand where they are stored anyway."""
    return ConfigError(
        "storing offsets needs a consumer that does not do it by itself: "
        "give enable_auto_offset_store=False"
    )


def _pairs(topics: Any, partitions: Any) -> list[Partition]:
    zeros = 0 if isinstance(topics, str) else [0] * len(topics)
    return list(aligned(topics, partitions, zeros))


def _offsets(places: list[TopicPartition]) -> dict[Partition, int]:
    return {(place.topic, place.partition): place.offset for place in places if place.offset >= 0}
