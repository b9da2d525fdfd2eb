"""Which offsets each partition holds: the first, the next to come, and the one of a moment."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported silently

from penstock.errors import PenstockError
from penstock.kafka.admin import describe
from penstock.kafka.admin.asking import Asker, code_of
from penstock.kafka.admin.lookup import has_leaders, require
from penstock.kafka.handle import Partition


class Watermarks:
    """The offsets of partitions, asked of their leaders."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset that each partition still has."""
        return self._offsets(partitions, describe.EARLIEST)

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset that each partition's next record will get."""
        return self._offsets(partitions, describe.LATEST)

    def offsets_at(
        self, timestamp_ms: int, partitions: Iterable[Partition]
    ) -> dict[Partition, int]:
        """The first offset at or after a time; the end where no record is that young."""
        found = self._offsets(partitions, OffsetSpec.for_timestamp(timestamp_ms))
        young = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.latest(young)}

    def _offsets(self, partitions: Iterable[Partition], spec: OffsetSpec) -> dict[Partition, int]:
        asked = {TopicPartition(*partition): spec for partition in partitions}
        if not asked:
            return {}
        told = self._told(asked)
        return {(tp.topic, tp.partition): info.offset for tp, info in told.items()}

    def _told(self, asked: dict[TopicPartition, OffsetSpec]) -> dict[Any, Any]:
        question = ("reading offsets", self._ask.client.list_offsets, asked)
        try:
            return self._ask.each(*question)
        except PenstockError as error:
            if code_of(error) != KafkaError._NOENT:
                raise
        # "No leaders found": there is no such partition, or its leader is just being chosen.
        require(self._ask, [(tp.topic, tp.partition) for tp in asked])
        for topic in {tp.topic for tp in asked}:
            self._ask.until(f"topic {topic!r} has leaders", partial(has_leaders, self._ask, topic))
        return self._ask.each(*question)
