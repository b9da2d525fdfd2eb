"""Messages become records: every kind of body, every type, hostile bytes."""

from __future__ import annotations

import json
import struct
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Message, byte, symbol, timestamp, uint, ulong

from penstock.imports.jms.amqp_message import read_message
from penstock.imports.jms.amqp_values import AmqpError, read_value
from penstock.imports.jms.jms_records import Record, Records
from penstock.sinks.jms.amqp_encoding import (
    Envelope,
    Properties,
    application_properties,
    body,
    encoded,
)

NOW = 1_800_000_000_000
KIND = symbol("x-opt-jms-msg-type")


def record(message: Message | bytes, key: str = "message_id") -> Record:
    data = message if isinstance(message, bytes) else bytes(message.encode())
    return Records("orders", key).record(data, NOW)


def headers(made: Record) -> dict[str, bytes | None]:
    return {each["key"]: each["value"] for each in made.headers}


VALUES: list[tuple[int | None, Any, bool, bytes | None]] = [
    (5, "grün", False, "grün".encode()),
    (5, None, False, None),
    (5, "", False, b""),
    (3, b"\x00\xff", True, b"\x00\xff"),
    (0, None, False, None),
    (2, {"n": 1, "t": "x", "b": b"\x00\x01", "f": 0.5, "no": None}, False,
     b'{"n":1,"t":"x","b":"AAE=","f":0.5,"no":null}'),
    (4, [1, True, b"\xff", "a"], False, b'[1,true,"/w==","a"]'),
    (None, "text", False, b"text"),
    (None, b"raw", True, b"raw"),
    (None, b"raw", False, b"raw"),
    (None, {"a": [1, {"b": 2}]}, False, b'{"a":[1,{"b":2}]}'),
    (None, ulong(7), False, b"7"),
    (None, float("nan"), False, b'"NaN"'),
    (None, proton.float32(0.1), False, b"0.1"),
    (None, UUID(int=1), False, b"00000000-0000-0000-0000-000000000001"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "content", "inferred", "value"), VALUES)
def test_the_value_follows_the_kind(
    kind: int | None, content: Any, inferred: bool, value: bytes | None
) -> None:
    annotations = None if kind is None else {KIND: byte(kind)}
    assert record(Message(body=content, inferred=inferred, annotations=annotations)).value == value


@pytest.mark.parametrize(
    "fields",
    [{"annotations": {KIND: byte(1)}}, {"content_type": "application/x-java-serialized-object"}],
)
def test_java_objects_are_not_touched(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="holds a Java object, which is never deserialized"):
        record(Message(body=b"\xac\xed\x00\x05", inferred=True, **fields))


def test_headers_and_properties_become_headers() -> None:
    message = Message(
        body="x", id="ID:7", correlation_id="c", subject="Order", reply_to="answers", priority=9,
        address="queue://orders", group_id="g", group_sequence=3, creation_time=1.5,
        content_type="text/plain",
        annotations={KIND: byte(5)},
        properties={
            "a": 1, "b": "ü", "c": True, "d": 0.25, "e": None, "jms.priority": "0", "jms.type\0": "no",
        },
    )  # fmt: skip
    made = record(message)
    assert made.key == b"ID:7"
    assert made.timestamp == 1500
    assert headers(made) == {
        "a": b"1", "b": "ü".encode(), "c": b"true", "d": b"0.25", "e": None, "jms.type\\x00": b"no",
        "jms.message_id": b"ID:7", "jms.correlation_id": b"c", "jms.type": b"Order",
        "jms.reply_to": b"answers", "jms.priority": b"9", "jms.redelivered": b"false",
        "jms.destination": b"queue://orders", "jms.kind": b"text", "jms.group_id": b"g",
        "jms.group_sequence": b"3", "jms.content_type": b"text/plain",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("message_id", b"17"),
        ("correlation_id", b"\x01\xff"),
        ("group_id", b"g"),
        ("property:customer", b"5"),
        ("property:other", None),
        ("none", None),
    ],
)
def test_the_key_is_what_is_chosen(key: str, found: bytes | None) -> None:
    message = Message(
        body="x", id=ulong(17), correlation_id=b"\x01\xff", group_id="g", properties={"customer": 5}
    )
    assert record(message, key).key == found


def test_a_clock_that_is_ahead_counts_as_now() -> None:
    later = NOW / 1000 + timedelta(days=400).total_seconds()
    assert record(Message(body="x", creation_time=later)).timestamp == NOW
    assert record(Message(body="x")).timestamp is None


def test_a_redelivered_message_says_so() -> None:
    made = record(Message(body="x", delivery_count=2))
    assert headers(made)["jms.redelivered"] == b"true"


def test_several_data_sections_are_one_value() -> None:
    assert record(b"\x00Su\xa0\x03abc\x00Su\xa0\x03def").value == b"abcdef"
    assert record(b"\x00Su\xa0\x01x" * 10_000 + b"\x00Su\xa0\x00").value == b"x" * 10_000
    assert record(b"\x00Sv\xc0\x03\x01T\x01\x00Sv\xc0\x03\x01T\x02").value == b"[1,2]"


def nested(depth: int) -> bytes:
    value = b"\x40"
    for _ in range(depth):
        value = b"\xd0" + struct.pack(">II", len(value) + 4, 1) + value
    return b"\x00Sw" + value


HOSTILE = [
    (b"", "no bytes at all"),
    (b"\xff", "no section begins at byte 0"),
    (b"\x00", "ends in the middle"),
    (b"\x00Sp", "ends in the middle"),
    (b"\x00Sw\xa1\x05ab", "ends in the middle"),
    (b"\x00Sw\xa1\x02\xff\xfe", "a text is not UTF-8"),
    (b"\x00Sw\x99", "there is no type 0x99"),
    (b"\x00S\x01\x40", "there is no section 1"),
    (b"\x00\xa3\x04spam\x40", "there is no section 'spam'"),
    (b"\x00Sp\x40", "the section 0x70 of the message is a NoneType"),
    (b"\x00Su\xa1\x01a", "the section 0x75 of the message is a str"),
    (b"\x00Sw\x40\x00Sw\x40", "bodies of different kinds"),
    (b"\x00Sw\xc1\x03\x01\x41", "ends in the middle"),
    (b"\x00Sw\xc1\x02\x01\x41", "a key without a value"),
    (b"\x00Sw\xc1\x03\x02\x45\x41", "a key that is a list or a map"),
    (b"\x00Sw\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40", "ends in the middle"),
    (b"\x00\x45\x40", "there is no section \\[\\]"),
    (b"\x00\xc1\x01\x00\x40", "there is no section {}"),
    (b"\x00Sw\xc0\x02\x01\xc0\x03\x02\x40\x40", "a value goes beyond the end of its list"),
    (b"\x00Sw\xc1\x04\x02\x40\xa1\x02ab", "a value goes beyond the end"),
    (b"\x00Sw\xe0\x03\x01\xa1\x02ab", "a value goes beyond the end"),
    (b"\x00Sw\xc1\x09\x04\xa1\x01a\x41\xa1\x01a\x42", "a map has a key twice"),
    (nested(100), "nested more than 32 deep"),
    (nested(5000), "nested more than 32 deep"),
]


@pytest.mark.parametrize(("data", "reason"), HOSTILE)
def test_bytes_that_are_no_message_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(AmqpError, match=reason):
        read_message(data)


def test_a_portion_has_good_and_bad_ones_apart() -> None:
    good = bytes(Message(body="a", id="1").encode())
    made = Records("q", "message_id").portion([good, b"\xff", good], [], NOW, {"messages": 3})
    assert made.records.num_rows == 2
    assert [(each.value, each.error_type) for each in made.bad] == [(b"\xff", "AmqpError")]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    begun = time.monotonic()
    for form in (data, b"\x00Sw" + data, b"\x00Sr" + data):
        try:
            record(form)
        except ValueError:
            continue
    assert time.monotonic() - begun < 60


_SIMPLE = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=300) | st.binary(max_size=300)
)  # fmt: skip


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=20), _SIMPLE, max_size=30))
def test_what_the_sink_writes_the_source_and_proton_read(given_map: dict[str, Any]) -> None:
    assert read_value(encoded(5), 0) == (5, 9)
    data = Envelope().header() + Envelope().annotations("map") + Properties("id", "q").section()
    data += application_properties(given_map) + body("map", given_map)
    mine = read_message(data)
    assert mine.body == mine.application or not given_map
    assert mine.body == given_map
    theirs = Message()
    theirs.decode(data)
    assert theirs.id == "id"
    assert theirs.durable
    assert theirs.body == given_map


def test_times_and_unsigned_numbers_are_read() -> None:
    message = Message(body={"t": timestamp(5), "u": uint(2**32 - 1), "l": ulong(2**64 - 1)})
    value = record(message).value
    assert value is not None
    assert json.loads(value) == {"t": 5, "u": 2**32 - 1, "l": 2**64 - 1}
