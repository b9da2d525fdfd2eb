"""Which offsets each partition holds: the first, the next to come, and the one of a moment."""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import KafkaError

from penstock.errors import PenstockError
from penstock.kafka.admin.asking import Asker, code_of
from penstock.kafka.admin.lookup import require_leaders
from penstock.kafka.handle import Partition
from penstock.kafka.offsets import EARLIEST, LATEST

# There is no such partition, or it was not there when its leader was last asked for.
_UNKNOWN = {
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class Watermarks:
    """The offsets of partitions, asked of their leaders."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset that each partition still has."""
        return self._offsets(partitions, EARLIEST)

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset that each partition's next record will get."""
        return self._offsets(partitions, LATEST)

    def offsets_at(
        self, timestamp_ms: int, partitions: Iterable[Partition]
    ) -> dict[Partition, int]:
        """The first offset at or after a time; the end where no record is that young."""
        found = self._offsets(partitions, max(0, timestamp_ms))
        young = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.latest(young)}

    def _offsets(self, partitions: Iterable[Partition], moment: int) -> dict[Partition, int]:
        asked = list(dict.fromkeys(partitions))
        if not asked:
            return {}
        deadline = time.monotonic() + self._ask.timeout
        while True:
            try:
                return self._ask.offsets.at(moment, asked)
            except PenstockError as error:
                if code_of(error) not in _UNKNOWN or time.monotonic() > deadline:
                    raise
            require_leaders(self._ask, asked)
            self._ask.offsets.look_anew()
