"""Questions about partitions that may be gone by the time they are asked: the others are answered."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import ConfigError
from penstock.kafka import Admin, GroupOffsets
from penstock.pipeline import Offsets, Partition


def oldest(admin: Admin, places: Iterable[Partition]) -> Offsets:
    """Return the first offset of each partition that is there."""
    asked = list(places)
    try:
        return admin.earliest(asked)
    except ConfigError:
        return admin.earliest(admin.existing(asked))


def commit(group: GroupOffsets, admin: Admin, offsets: Offsets) -> None:
    """Commit offsets; a topic that is gone has no place to keep."""
    try:
        group.commit(offsets)
    except ConfigError:
        there = set(admin.existing(offsets))
        if there == offsets.keys():
            raise
        group.commit({place: offset for place, offset in offsets.items() if place in there})
