"""No bytes and no value make a format crash, hang or take the memory: it works, or says why not."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.errors import FormatError
from penstock.formats import FORMATS, find_format

VECTORS = json.loads(
    (Path(__file__).parents[1] / "unit/formats/dolphindb-wire-vectors.json").read_text()
)
TABLE = pa.table(
    {
        "id": pa.array([1, None, 3]),
        "name": pa.array(["a", None, "é"]),
        "symbol": pa.array(["x", "y", "x"]).dictionary_encode(),
        "rows": pa.array([[1.5], [2.5, None], [3.5]]),
    }
)
WHOLE = {
    "dolphindb": [bytes.fromhex(each["hex"]) for each in VECTORS],
    "arrow": [find_format("arrow").encode(each) for each in (7, "a", [1, None], {"a": [1]}, TABLE)],
    "json": [b'{"a":[1,2.5,null,"x"],"b":{"c":true}}', b"[123456789012345678901234567890]"],
    "plain": ["é".encode()],
    "string": ["é".encode()],
    "bytes": [b"abc"],
    "short": [b"\0\1"],
    "integer": [b"\0\1\0\1"],
    "long": [b"\0\1\0\1\0\1\0\1"],
    "float": [b"\x3f\x80\0\0"],
    "double": [b"\x3f\xf0\0\0\0\0\0\0"],
    "uuid": [b"00000000-0000-0000-0000-000000000001"],
}
WHOLE["auto"] = WHOLE["dolphindb"] + WHOLE["arrow"] + WHOLE["json"]

ODD = st.sampled_from(
    [
        None,
        True,
        -(2**31),
        2**63,
        2**70,
        math.nan,
        math.inf,
        "\0",
        "\ud800",
        b"\0",
        1j,
        object(),
        print,
        Decimal("sNaN"),
        Decimal("1E+50"),
        Decimal("1E-50"),
        date.min,
        datetime.max,
        timedelta.max,
        UUID(int=0),
        datetime(2024, 1, 1, tzinfo=timezone.utc),
        time(1, tzinfo=timezone.utc),
        ip_address("fe80::1%eth0"),
        np.int8(1),
        np.float16(1),
        np.longdouble(1),
        np.void(b"abc"),
        np.datetime64("NaT"),
        np.bytes_(b"a"),
        np.datetime64(5, "ps"),
        np.datetime64("30000-01-01"),
        np.timedelta64(1, "s"),
        np.zeros((2, 0, 2)),
        np.zeros(2, "i4,f8"),
        np.array([1, 2], "M8[5s]"),
        np.array([None, "a", 1.5], object),
        {1, 2},
        range(2),
        pd.NaT,
        pd.NA,
        pd.Timestamp(1),
        pd.Period("2024-01"),
        pd.Series([1, "a"]),
        pd.DataFrame({"a": [1, "a"]}),
        pa.scalar(None),
        pa.scalar([1]),
        pa.array([{"a": [1.5]}]),
        pa.array([1], pa.timestamp("s", "No/Where")),
        pa.array([-5], pa.time32("s")),
        pa.array([b"abc"], pa.binary(3)),
        pa.table({}),
        TABLE,
    ]
)
VALUES = st.recursive(
    ODD,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "", 1, None, (1,)]), inner, max_size=3)
    ),
    max_leaves=6,
)


def read(name: str, data: bytes) -> Any:
    """Read, and look at all that was read: damage may sleep in a buffer."""
    try:
        value = find_format(name).decode(data)
    except FormatError:
        return None
    if isinstance(value, pa.Array | pa.Table):
        value.validate(full=True)
    return str(value)[:1000]


@st.composite
def damaged(draw: st.DrawFn, whole: list[bytes]) -> bytes:
    data = bytearray(draw(st.sampled_from(whole)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        piece = draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"\xff" * 4, b"\xff\xff\xff\x7f"]))
        )
        data[place : place + draw(st.integers(0, 4))] = piece
    return bytes(data)


def test_every_format_is_tried() -> None:
    assert set(WHOLE) == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.binary(max_size=200))
@example(data=b"")
@settings(max_examples=200, deadline=None)
def test_random_bytes_are_a_value_or_an_error(name: str, data: bytes) -> None:
    read(name, data)


@pytest.mark.parametrize("name", FORMATS)
@given(draw=st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_bytes_are_a_value_or_an_error(name: str, draw: st.DataObject) -> None:
    read(name, draw.draw(damaged(WHOLE[name])))


@given(code=st.integers(0, 255), form=st.integers(0, 12), rest=st.binary(max_size=60))
@settings(max_examples=1000, deadline=None)
def test_a_random_body_behind_a_flag_is_a_value_or_an_error(
    code: int, form: int, rest: bytes
) -> None:
    read("dolphindb", bytes((code, form)) + rest)


@pytest.mark.parametrize("form", range(7))
@pytest.mark.parametrize("code", [*range(42), *range(64, 106), 145])
def test_a_count_without_bytes_takes_no_memory(code: int, form: int) -> None:
    for count in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\x40"):
        for rest in (b"", b"\1\0\0\0", b"\1\0\0\0" * 4, count, count * 3):
            read("dolphindb", bytes((code, form)) + count + rest)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    deep = b"\x19\x01\1\0\0\0\1\0\0\0" * 100_000 + b"\0\0\0"

    with pytest.raises(FormatError, match="nested more than 64 deep"):
        find_format("dolphindb").decode(deep)


def test_deep_json_is_an_error_and_no_crash() -> None:
    with pytest.raises(FormatError, match="depth limit"):
        find_format("json").decode(b"[" * 100_000)


@pytest.mark.parametrize("name", FORMATS)
@given(value=VALUES)
@settings(max_examples=300, deadline=None)
def test_any_object_is_written_or_refused(name: str, value: Any) -> None:
    try:
        data = find_format(name).encode(value)
    except FormatError:
        return
    read(name, data)


@pytest.mark.parametrize("name", ["json", "arrow", "dolphindb"])
def test_a_list_inside_itself_is_refused(name: str) -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(FormatError):
        find_format(name).encode(value)
