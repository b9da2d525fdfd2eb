"""PLAIN: text and bytes as they are, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FormatError
from penstock.formats.primitives import Plain


@given(st.text())
def test_text_is_read_back(text: str) -> None:
    assert Plain().encode(text) == text.encode()
    assert Plain().decode(text.encode()) == text


@given(st.binary())
def test_bytes_go_as_they_are(data: bytes) -> None:
    found = Plain().decode(Plain().encode(data))

    assert (found.encode() if isinstance(found, str) else found) == data


def test_bytes_that_are_no_text_stay_bytes() -> None:
    assert Plain().decode(b"\xff\xfe") == b"\xff\xfe"


@pytest.mark.parametrize("value", [bytearray(b"ab"), memoryview(b"ab")])
def test_what_holds_bytes_is_bytes(value: Any) -> None:
    assert Plain().encode(value) == b"ab"


@pytest.mark.parametrize("value", [1, 1.5, None, ["a"], {"a": "b"}, object()])
def test_anything_else_is_refused_with_the_way_out(value: Any) -> None:
    with pytest.raises(FormatError, match=rf"cannot send .*{type(value).__name__}; choose another"):
        Plain().encode(value)
