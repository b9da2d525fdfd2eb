"""Reading without a format: the first bytes decide."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import FormatError
from penstock.formats import find_format
from penstock.formats.detect import Auto

AUTO = Auto()


def test_an_empty_value_is_none() -> None:
    assert AUTO.decode(b"") is None


@pytest.mark.parametrize("value", [[1, 2], {"a": [1, None]}])
def test_json_is_read_by_its_first_character(value: Any) -> None:
    assert AUTO.decode(find_format("json").encode(value)) == value


@pytest.mark.parametrize("name", ["arrow", "dolphindb"])
@pytest.mark.parametrize("value", [7, 1.5, "text", "{text", "[1]", True])
def test_a_binary_scalar_is_read_back(name: str, value: Any) -> None:
    assert AUTO.decode(find_format(name).encode(value)) == value


@pytest.mark.parametrize("name", ["arrow", "dolphindb"])
def test_a_binary_table_is_read_back(name: str) -> None:
    table = pa.table({"a": [1, None], "b": ["x", "y"]})

    assert AUTO.decode(find_format(name).encode(table)).equals(table)


@pytest.mark.parametrize("data", [
    b"hello", b" [1]", b"1", b'"text"', b"<xml/>", b"\xff\xff\xff\xff", b"\xff", b"{", b"[1", b"\x00",
    b"\xef\xbb\xbf{}",
])  # fmt: skip
def test_what_is_none_of_the_formats_is_an_error(data: bytes) -> None:
    with pytest.raises(FormatError):
        AUTO.decode(data)


def test_writing_needs_a_format() -> None:
    with pytest.raises(FormatError, match="'auto' is for reading; name the format to write"):
        AUTO.encode([1])
