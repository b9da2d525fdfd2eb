"""The plugin's functions about where a consumer is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.compat.dolphindb.arguments import offsets_at, wait_of
from penstock.compat.dolphindb.values import frame, to_frame
from penstock.kafka import Consumer
from penstock.kafka.handle import Partition
from penstock.kafka.places import NO_OFFSET, aligned

if TYPE_CHECKING:
    from pandas import DataFrame


_NOT_TOLD = -1000


def getAssignment(consumer: Consumer) -> DataFrame:
    """The partitions that are read, as a table of topic, partition and offset.

    As the plugin prints it the offset is -1000 always; `consumer.assigned_at` has those of `assign`.
    """
    return places(dict.fromkeys(consumer.assignment, _NOT_TOLD))


def getOffset(consumer: Consumer, topic: Any, partition: Any) -> Any:
    """The first and the next offset of a partition, as far as this consumer knows; else -1001 for both.

    Vectors of topics and partitions give a list of such pairs.
    """
    ends = list(consumer.cached_watermarks(aligned(topic, partition, None)).values())
    return ends[0] if isinstance(topic, str) else ends


def getOffsetCommitted(
    consumer: Consumer,
    topics: Any,
    partitions: Any,
    offsets: Any,
    timeout: int | None = None,
) -> DataFrame:
    """What the group committed, as a table of topic, partition and offset; -1001 where nothing is.

    The plugin asks for offsets too; they change nothing.
    """
    asked, wait = aligned(topics, partitions, offsets), wait_of(timeout)
    waiting = {} if wait is None else {"timeout": wait / 1000}
    return _known(asked, consumer.committed(asked, **waiting))


def getOffsetPosition(consumer: Consumer, topics: Any, partitions: Any) -> DataFrame:
    """The next offset to be read, as a table of topic, partition and offset.

    -1001 where nothing was read yet.
    """
    asked = aligned(topics, partitions, None)
    return _known(asked, consumer.position(asked))


def getOffsetInfo(consumer: Consumer, topic: Any, partition: Any) -> DataFrame:
    """A table of topic, partition, minOffset, maxOffset, offsetPosition and offsetCommitted.

    The position is the offset of the next message to be read; -1001 where there is none yet.
    """
    return to_frame(consumer.offset_info(topic, partition))


def storeConsumedOffset(consumer: Consumer) -> None:
    """Let the next automatic commit take everything that was consumed.

    For a consumer with `enable.auto.offset.store` false and `enable.auto.commit` true.
    """
    consumer.store_offsets()


def storeOffset(consumer: Consumer, topics: Any, partitions: Any, offsets: Any) -> None:
    """Let the next automatic commit take the offsets that are given."""
    consumer.store_offsets(offsets_at(topics, partitions, offsets))


def places(found: Mapping[Partition, int]) -> DataFrame:
    """Partitions and offsets as a table of topic, partition and offset, in order."""
    return place_table((*where, found[where]) for where in sorted(found))


def place_table(rows: Iterable[tuple[str, int, int]]) -> DataFrame:
    """Rows of topic, partition and offset as a table."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return frame(
        {
            "topic": np.array(columns[0], dtype=object),
            "partition": np.array(columns[1], dtype=np.int32),
            "offset": np.array(columns[2], dtype=np.int64),
        }
    )


def _known(asked: Iterable[Partition], found: Mapping[Partition, int]) -> DataFrame:
    return place_table((*where, found.get(where, NO_OFFSET)) for where in asked)
