"""The plugin's functions for assignments, positions and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.compat.dolphindb.dolphindb_arguments import (
    checked,
    offsets_at,
    partitions_at,
    wait_of,
)
from penstock.compat.dolphindb.dolphindb_values import frame, to_frame
from penstock.kafka import Consumer
from penstock.kafka.handle import Partition
from penstock.kafka.partitions import NO_OFFSET

if TYPE_CHECKING:
    from pandas import DataFrame


_UNKNOWN_OFFSET = -1000


@checked()
def getAssignment(consumer: Consumer) -> DataFrame:
    """Return the assigned partitions as a table of topic, partition and offset.

    As the plugin prints it the offset is -1000 always; `consumer.assigned_at` has those of `assign`.
    """
    return place_table((*where, _UNKNOWN_OFFSET) for where in sorted(consumer.assignment))


@checked()
def getOffset(consumer: Consumer, topic: Any, partition: Any) -> Any:
    """Return the first and the next offset of a partition, from the cache or from the broker.

    Vectors of topics and partitions give a list of such pairs.
    """
    asked = partitions_at(topic, partition)
    known = consumer.cached_watermarks(asked)
    missing = [where for where in asked if NO_OFFSET in known[where]]
    ends = known | (consumer.watermarks(missing) if missing else {})
    return ends[asked[0]] if isinstance(topic, str) else [ends[where] for where in asked]


@checked()
def getOffsetCommitted(
    consumer: Consumer, topics: Any, partitions: Any, offsets: Any, timeout: int | None = None
) -> DataFrame:
    """Return the committed offsets as a table of topic, partition and offset; -1001 if there is none.

    The plugin asks for offsets too; they change nothing.
    """
    asked, wait = offsets_at(topics, partitions, offsets), wait_of(timeout)
    waiting = {} if wait is None else {"timeout": wait}
    return _known(asked, consumer.committed(asked, **waiting))


@checked()
def getOffsetPosition(consumer: Consumer, topics: Any, partitions: Any) -> DataFrame:
    """Return the next offset to be read, as a table of topic, partition and offset.

    -1001 if nothing was read yet.
    """
    asked = partitions_at(topics, partitions)
    return _known(asked, consumer.position(asked))


@checked()
def getOffsetInfo(consumer: Consumer, topic: Any, partition: Any) -> DataFrame:
    """Return a table of topic, partition, minOffset, maxOffset, offsetPosition and offsetCommitted.

    The position is the offset of the next message to be read; -1001 if there is none yet.
    """
    asked = partitions_at(topic, partition)
    names, numbers = [where[0] for where in asked], [where[1] for where in asked]
    return to_frame(consumer.offset_info(names, numbers))


@checked()
def storeConsumedOffset(consumer: Consumer) -> None:
    """Let the next automatic commit include everything that was consumed.

    For a consumer with `enable.auto.offset.store` false and `enable.auto.commit` true.
    """
    consumer.store_offsets()


@checked()
def storeOffset(consumer: Consumer, topics: Any, partitions: Any, offsets: Any) -> None:
    """Let the next automatic commit use the given offsets."""
    consumer.store_offsets(offsets_at(topics, partitions, offsets))


def place_table(rows: Iterable[tuple[str, int, int]]) -> DataFrame:
    """Return rows of topic, partition and offset as a table."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return frame(
        {
            "topic": np.array(columns[0], dtype=object),
            "partition": np.array(columns[1], dtype=np.int32),
            "offset": np.array(columns[2], dtype=np.int64),
        }
    )


def _known(asked: Iterable[Partition], by_partition: Mapping[Partition, int]) -> DataFrame:
    return place_table((*where, by_partition.get(where, NO_OFFSET)) for where in asked)
