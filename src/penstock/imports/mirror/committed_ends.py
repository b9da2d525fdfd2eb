"""Where partitions begin and end, for clusters whose topics change: one request for all of them."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError

from penstock.config import Connection
from penstock.errors import PenstockError, TransientError
from penstock.kafka.handle import Partition
from penstock.kafka.kafka_errors import code_of
from penstock.kafka.offsets import EARLIEST, LATEST, PartitionOffsets

_ANSWER = 10.0
_MISSING = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)


class CommittedEnds:
    """Asks for the first offset of partitions, and for the end of what is committed in them."""

    def __init__(self, connection: Connection, isolation: str = "read_committed") -> None:
        self._client = PartitionOffsets(connection, _ANSWER, isolation_level=isolation)

    def __enter__(self) -> CommittedEnds:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def oldest(self, where: Iterable[Partition]) -> dict[Partition, int]:
        """Return the first offset of each partition."""
        return self._at(EARLIEST, [*where])

    def ends(self, where: Iterable[Partition]) -> dict[Partition, int]:
        """Return the end of each partition: before the first transaction that is open."""
        return self._at(LATEST, [*where])

    def _at(self, moment: int, where: list[Partition]) -> dict[Partition, int]:
        if not where:
            return {}
        try:
            return self._client.at(moment, where)
        except PenstockError as error:
            if code_of(error) not in _MISSING:
                raise
        # The client remembers which partitions there are: some may be new.
        self._client.look_anew()
        try:
            return self._client.at(moment, where)
        except PenstockError as error:
            if code_of(error) not in _MISSING:
                raise
            raise TransientError(f"a topic was deleted, or is being created: {error}") from error
