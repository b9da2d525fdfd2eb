"""Messages as one Arrow table, column by column: no Python loop over the records."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message

_HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
_TIME = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": _TIME,
        "headers": _HEADERS,
    }
)


def table_of(messages: list[Message]) -> pa.Table:
    """Return the messages as a table; each column is filled by one call per message, made in C."""
    columns = [
        _bytes(map(Message.key, messages)),
        _bytes(map(Message.value, messages)),
        _topics(messages),
        pa.array(np.fromiter(map(Message.partition, messages), np.int32, len(messages))),
        pa.array(np.fromiter(map(Message.offset, messages), np.int64, len(messages))),
        _times(messages),
        _headers(messages),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def offset_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Return the answer of `offset_info`, under the names of its columns."""
    names = ["minOffset", "maxOffset", "offsetPosition", "offsetCommitted"]
    fields = {"topic": pa.string(), "partition": pa.int32(), **dict.fromkeys(names, pa.int64())}
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _bytes(values: Any) -> pa.Array:
    items = list(values)
    if items.count(None) == len(items):
        return pa.nulls(len(items), pa.binary())
    return pa.array(items, pa.binary())


def _topics(messages: list[Message]) -> pa.Array:
    names = list(map(Message.topic, messages))
    if names and names.count(names[0]) == len(names):
        # Nearly always one topic: its name is written once, and repeated by Arrow.
        return pa.repeat(pa.scalar(names[0], pa.string()), len(names))
    return pa.array(names, pa.string())


def _times(messages: list[Message]) -> pa.Array:
    # Each pair is freed at once: a list of them would keep Python's garbage collector busy.
    stamps = np.fromiter(
        map(itemgetter(1), map(Message.timestamp, messages)), np.int64, len(messages)
    )
    times = pa.array(stamps).cast(_TIME)
    if (stamps > 0).all():
        return times
    known = [kind != 0 for kind, _ in map(Message.timestamp, messages)]
    return pc.if_else(pa.array(known), times, None)


def _headers(messages: list[Message]) -> pa.Array:
    headers = list(map(Message.headers, messages))
    if headers.count(None) == len(headers):
        return pa.ListArray.from_arrays(
            pa.array(np.zeros(len(headers) + 1, np.int32)), pa.array([], _HEADERS.value_type)
        )
    return pa.array([each or [] for each in headers], _HEADERS)
