"""Kafka's primitives: the bytes that Kafka 4.3.1's own Java serializers gave, and what is refused."""

from __future__ import annotations

import math
import struct
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FormatError
from penstock.formats import find_format

FROM_JAVA: list[tuple[str, Any, str]] = [
    ("string", "é价😀", "c3a9e4bbb7f09f9880"),
    ("short", 0, "0000"),
    ("short", 258, "0102"),
    ("short", -2, "fffe"),
    ("short", -(2**15), "8000"),
    ("short", 2**15 - 1, "7fff"),
    ("integer", 16909060, "01020304"),
    ("integer", -2, "fffffffe"),
    ("integer", -(2**31), "80000000"),
    ("integer", 2**31 - 1, "7fffffff"),
    ("long", 72623859790382856, "0102030405060708"),
    ("long", -2, "fffffffffffffffe"),
    ("long", -(2**63), "8000000000000000"),
    ("long", 2**63 - 1, "7fffffffffffffff"),
    ("float", 1.5, "3fc00000"),
    ("float", -0.0, "80000000"),
    ("float", 3.4028234663852886e38, "7f7fffff"),
    ("float", 1.401298464324817e-45, "00000001"),
    ("float", math.inf, "7f800000"),
    ("double", 1.5, "3ff8000000000000"),
    ("double", -0.1, "bfb999999999999a"),
    ("double", 1.7976931348623157e308, "7fefffffffffffff"),
    ("double", -math.inf, "fff0000000000000"),
    ("bytes", b"\x00\xff", "00ff"),
    (
        "uuid",
        UUID("5d212a78-cc48-e3b1-4235-b4d91473ee87"),
        "35643231326137382d636334382d653362312d343233352d623464393134373365653837",
    ),
]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "short": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(),
    "uuid": st.uuids(),
}


@pytest.mark.parametrize(("name", "value", "expected"), FROM_JAVA)
def test_the_bytes_are_those_of_the_java_serializer(name: str, value: Any, expected: str) -> None:
    assert find_format(name).encode(value).hex() == expected
    assert find_format(name).decode(bytes.fromhex(expected)) == value


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_what_is_written_is_read_back(name: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[name])

    assert find_format(name).decode(find_format(name).encode(value)) == value


@pytest.mark.parametrize("name", ["float", "double"])
def test_nan_is_read_back(name: str) -> None:
    assert math.isnan(find_format(name).decode(find_format(name).encode(math.nan)))


@pytest.mark.parametrize(("name", "value"), [
    ("short", 2**15), ("short", -(2**15) - 1), ("integer", 2**31), ("long", 2**63),
    ("long", -(2**63) - 1), ("float", 3.5e38), ("float", 2**60 + 1), ("double", 10**400),
    ("double", 2**53 + 1),
])  # fmt: skip
def test_a_number_that_does_not_fit_is_refused(name: str, value: Any) -> None:
    with pytest.raises(FormatError, match=f"{name} cannot hold this"):
        find_format(name).encode(value)


@pytest.mark.parametrize(("name", "value"), [
    ("string", b"a"), ("string", 1), ("short", "1"), ("short", 1.0), ("short", True),
    ("integer", np.bool_(True)), ("long", np.array([1])), ("float", "1.5"), ("double", True),
    ("bytes", "a"), ("uuid", "a"), ("uuid", b"a" * 16),
])  # fmt: skip
def test_a_value_of_another_type_is_refused_with_both_types(name: str, value: Any) -> None:
    with pytest.raises(FormatError, match=rf"'{name}' takes .*, not .*{type(value).__name__}"):
        find_format(name).encode(value)


def test_numpy_numbers_are_numbers() -> None:
    assert find_format("short").encode(np.int8(-2)) == b"\xff\xfe"
    assert find_format("float").encode(np.float32(1.5)) == struct.pack(">f", 1.5)


@pytest.mark.parametrize(("name", "width"), [
    ("short", 2), ("integer", 4), ("long", 8), ("float", 4), ("double", 8),
])  # fmt: skip
def test_another_length_is_refused(name: str, width: int) -> None:
    for length in (0, width - 1, width + 1, width * 2):
        with pytest.raises(FormatError, match=f"{name} is {width} bytes long, not {length}"):
            find_format(name).decode(bytes(length))


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(FormatError, match="not UTF-8: invalid start byte at byte 1"):
        find_format("string").decode(b"a\xff")


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(FormatError, match="lone surrogate at character 1"):
        find_format("string").encode("a\ud800")


@pytest.mark.parametrize(
    "text", ["", "1-1-1-1-1", "{5d212a78-cc48-e3b1-4235-b4d91473ee87}", "é" * 36]
)
def test_text_that_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="not a UUID in"):
        find_format("uuid").decode(text.encode())


def test_a_uuid_in_capitals_is_read() -> None:
    text = b"5D212A78-CC48-E3B1-4235-B4D91473EE87"

    assert find_format("uuid").decode(text) == UUID(text.decode())
