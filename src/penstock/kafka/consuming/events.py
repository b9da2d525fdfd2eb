"""What comes out of a queue: records, and what librdkafka has to tell."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from penstock.errors import PenstockError
from penstock.record import Record

Name = Literal["Fetch", "Rebalance", "OffsetCommit", "Error", "None"]


class Event(Struct, frozen=True):
    """One event. An event of the name "None" is false: nothing was there.

    >>> event = Event("OffsetCommit", partitions=[("trades", 0, 7)])
    >>> event.partition, bool(event), event.message_count
    (('trades', 0, 7), True, 0)
    >>> bool(Event("None"))
    False
    """

    name: Name
    messages: list[Record] = []
    error: PenstockError | None = None
    partitions: list[tuple[str, int, int]] = []
    """Topic, partition and offset of each one that the event is about."""
    change: str = ""
    """Of a Rebalance: Assigned, Revoked or Lost."""

    @property
    def message_count(self) -> int:
        """How many records the event holds."""
        return len(self.messages)

    @property
    def partition(self) -> tuple[str, int, int] | None:
        """The one partition that the event is about; None where it is about none or several."""
        places = self.partitions or [(r.topic, r.partition, r.offset) for r in self.messages]
        return places[0] if len(places) == 1 else None

    def table(self) -> Any:
        """All partitions as an Arrow table: topic, partition, offset."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        names = ["topic", "partition", "offset"]
        schema = pa.schema(
            [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
        )
        rows = [dict(zip(names, place, strict=True)) for place in self.partitions]
        return pa.Table.from_pylist(rows, schema=schema)

    def __bool__(self) -> bool:
        return self.name != "None"


NOTHING = Event("None")
