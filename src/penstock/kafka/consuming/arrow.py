"""Messages as one Arrow table, column by column: no Python loop over the records."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
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
    """The messages as a table; each column is filled by one call per message, made in C."""
    columns = [
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        _topics(messages),
        _numbers(map(Message.partition, messages), np.int32, len(messages)),
        _numbers(map(Message.offset, messages), np.int64, len(messages)),
        _times(messages),
        _headers(messages),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def offset_table(rows: list[dict[str, Any]]) -> pa.Table:
    """The answer of `offset_info`, under the names of its columns."""
    names = ["minOffset", "maxOffset", "offsetPosition", "offsetCommitted"]
    fields = {"topic": pa.string(), "partition": pa.int32(), **dict.fromkeys(names, pa.int64())}
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _numbers(values: Any, kind: Any, count: int) -> pa.Array:
    return pa.array(np.fromiter(values, kind, count))


def _topics(messages: list[Message]) -> pa.Array:
    names = list(map(Message.topic, messages))
    if names and names.count(names[0]) == len(names):
        # Nearly always one topic: its name is written once, and repeated by Arrow.
        return pa.repeat(pa.scalar(names[0], pa.string()), len(names))
    return pa.array(names, pa.string())


def _times(messages: list[Message]) -> pa.Array:
    stamps = list(map(Message.timestamp, messages))
    times = _numbers(map(itemgetter(1), stamps), np.int64, len(stamps)).cast(_TIME)
    kinds = np.fromiter(map(itemgetter(0), stamps), np.int8, len(stamps))
    return times if kinds.all() else pa.compute.if_else(pa.array(kinds != 0), times, None)


def _headers(messages: list[Message]) -> pa.Array:
    headers = list(map(Message.headers, messages))
    if not any(headers):
        return pa.ListArray.from_arrays(
            pa.array(np.zeros(len(headers) + 1, np.int32)), pa.array([], _HEADERS.value_type)
        )
    return pa.array([each or [] for each in headers], _HEADERS)
