"""The values of AMQP: what pika writes is read, what we write pika reads, and garbage is refused."""

from __future__ import annotations

import struct
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pika
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sinks.rabbitmq.amqp_values import (
    WrongValueError,
    as_text,
    read_properties,
    write_properties,
)

_short = st.text(max_size=60)
_octet = st.integers(0, 255)
_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.text(max_size=20),
        st.binary(max_size=20),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_short, inner, max_size=3),
    max_leaves=8,
)


def _bytes(value: Any) -> Any:
    """Return a value as it is read: texts are bytes, at every depth."""
    if isinstance(value, dict):
        return {name: _bytes(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_bytes(each) for each in value]
    return value.encode() if isinstance(value, str) else value


@given(
    message_id=_short,
    priority=_octet,
    timestamp=st.integers(0, 2**64 - 1),
    headers=st.dictionaries(_short, _values, max_size=4),
)
def test_what_pika_writes_is_read(
    message_id: str, priority: int, timestamp: int, headers: dict[str, Any]
) -> None:
    written = pika.BasicProperties(
        message_id=message_id, priority=priority, timestamp=timestamp, headers=headers
    ).encode()
    found = read_properties(b"".join(written))
    assert found == {
        "headers": [(name, _bytes(value)) for name, value in headers.items()],
        "priority": priority,
        "message_id": message_id.encode(),
        "timestamp": timestamp,
    }
    for _, value in found["headers"]:
        as_text(value)


@given(
    content_type=_short,
    reply_to=_short,
    delivery_mode=_octet,
    headers=st.lists(st.tuples(_short, st.none() | st.binary(max_size=30)), max_size=4),
)
def test_what_is_written_pika_reads(
    content_type: str, reply_to: str, delivery_mode: int, headers: list[tuple[str, bytes | None]]
) -> None:
    properties = {
        "content_type": content_type,
        "reply_to": reply_to,
        "delivery_mode": delivery_mode,
        "headers": headers,
    }
    found = pika.BasicProperties()
    found.decode(write_properties(properties))
    assert (found.content_type, found.reply_to) == (content_type, reply_to)
    assert found.delivery_mode == delivery_mode
    read = {
        name: value.encode() if isinstance(value, str) else value
        for name, value in found.headers.items()
    }
    assert read == dict(headers)


@given(st.binary(max_size=80))
def test_garbage_is_refused_and_nothing_else_happens(data: bytes) -> None:
    try:
        read_properties(data)
    except WrongValueError:
        return


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        (b"d", struct.pack(">d", 1.5), b"1.5"),
        (b"f", struct.pack(">f", 0.25), b"0.25"),
        (b"T", struct.pack(">Q", 2**63), str(2**63).encode()),
        (b"T", struct.pack(">Q", 0), b"1970-01-01T00:00:00Z"),
        (b"D", struct.pack(">Bi", 2, 1234), b"12.34"),
        (b"b", b"\xff", b"-1"),
        (b"B", b"\xff", b"255"),
        (b"i", b"\xff" * 4, str(2**32 - 1).encode()),
        (b"L", b"\xff" * 8, b"-1"),
        (b"x", struct.pack(">I", 2) + b"\0\xff", b"\0\xff"),
    ],
)
def test_numbers_times_and_bytes_are_kept_exactly(kind: bytes, data: bytes, text: bytes) -> None:
    table = b"\x01n" + kind + data
    flags = struct.pack(">HI", 1 << 13, len(table))
    ((name, value),) = read_properties(flags + table)["headers"]
    assert (name, as_text(value)) == ("n", text)


def test_nested_values_are_json() -> None:
    value = {"at": datetime(2024, 1, 2, tzinfo=timezone.utc), "d": Decimal("1.50"), "b": b"\xff"}
    assert as_text([value]) == b'[{"at":"2024-01-02T00:00:00Z","d":"1.50","b":"base64:/w=="}]'


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"message_id": "x" * 256}, "message_id has 256 bytes, and AMQP allows 255"),
        ({"priority": 256}, "priority is 256; allowed: 0 to 255"),
        ({"timestamp": -1}, "timestamp is -1; allowed: 0 to 18446744073709551615"),
        ({"headers": [("h" * 256, b"")]}, "the name of a header has 256 bytes"),
    ],
)
def test_what_amqp_cannot_have_is_refused(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongValueError, match=message):
        write_properties(properties)
