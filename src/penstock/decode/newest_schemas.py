"""The schemas that records of topics have with them now: found in their newest and oldest records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from penstock.config import Connection
from penstock.decode.kernels.connect.envelopes import Partition, parsed_schema, schema_text
from penstock.errors import ConfigError
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.schema import Schema
from penstock.formats.connect.schema_merging import merged
from penstock.kafka import Admin, Consumer
from penstock.kafka.consuming.loops import read_span
from penstock.kafka.offsets import NO_GROUP
from penstock.record import Record

# How many records of each partition are looked at, and how many times more where none has a schema.
_FEW, _TIMES_MORE = 20, 10
Offsets = dict[Partition, int]
Get = Callable[[Record], "bytes | None"]
Read = Callable[[Offsets, Offsets], list[bytes]]


@dataclass(frozen=True)
class Sampled:
    """The schema of a key or value of some topics, None where no record has one; and where it was looked.

    It is that of the newest record, with the fields that other records of the sample have as well.
    """

    schema: Schema | None
    ends: dict[Partition, int] = field(default_factory=dict)


def newest_schema(
    connection: Connection, topics: Sequence[str] | str, part: str, timeout: float = 30.0
) -> Sampled:
    """Return the schema of the newest records of some topics, or of all that match a pattern.

    Topics that do not exist yet have no records.
    """
    get: Get = (lambda record: record.key) if part == "key" else (lambda record: record.value)
    with Admin(connection, timeout=timeout) as admin:
        partitions = admin.partitions(_existing(admin, topics))
        first, ends = admin.earliest(partitions), admin.latest(partitions)
    read = partial(_texts, connection, get)
    newest = _backwards(read, first, ends)
    oldest = {where: min(first[where] + _FEW, ends[where]) for where in partitions}
    return Sampled(_common([*newest, *read(first, oldest)]), ends)


def _existing(admin: Admin, topics: Sequence[str] | str) -> list[str] | re.Pattern[str]:
    if isinstance(topics, str):
        return re.compile(topics)
    return list(admin.topic_ids(list(topics)))


def _backwards(read: Read, first: Offsets, ends: Offsets) -> list[bytes]:
    """Return the schemas of the newest records, the newest first; go back until one has a schema."""
    few, stop = _FEW, dict(ends)
    while True:
        start = {where: max(first[where], ends[where] - few) for where in ends}
        texts = read(start, stop)
        if texts or start == first:
            return texts
        few, stop = few * _TIMES_MORE, start


def _texts(connection: Connection, get: Get, start: Offsets, stop: Offsets) -> list[bytes]:
    """Return the schemas of some records, those nearest to the end first."""
    if start == stop:
        return []
    how: dict[str, Any] = {"isolation_level": "read_committed", "enable_auto_commit": False}
    found: list[tuple[tuple[int, int], bytes]] = []
    # A consumer for each span: partitions that it has paused would stay so.
    with Consumer(connection, NO_GROUP, **how) as reader:
        for record in chain.from_iterable(read_span(reader, start, stop)):
            if text := schema_text(get(record)):
                before_end = stop[record.topic, record.partition] - record.offset
                found.append(((before_end, -(record.timestamp or 0)), text))
    found.sort(key=lambda each: each[0])
    return list(dict.fromkeys(text for _, text in found))


def _common(texts: Sequence[bytes]) -> Schema | None:
    """Return the first schema that a column can have, with what the others add where they fit it."""
    common: Schema | None = None
    for text in texts:
        try:
            other = parsed_schema(text)
            if other is not None:
                arrow_type(other)
                both = other if common is None else merged(common, other)
                arrow_type(both)
                common = both
        except ConfigError:
            continue  # its records are dead letters, and say so
    return common
