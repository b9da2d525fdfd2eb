"""The primitive kernel: what Kafka's serializers write, all at once, with the errors of the formats."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decode.kernels.primitive_kernel import PRIMITIVES, PrimitiveKernel
from penstock.errors import FormatError
from penstock.formats import find_format

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=6),
    "short": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "bytes": st.binary(max_size=6),
    "uuid": st.uuids(),
}


def format_of(name: str) -> Any:
    return find_format("integer" if name == "int" else name)


def decode(name: Any, values: list[bytes | None]) -> Any:
    decoded = PrimitiveKernel(name, "v")(pa.record_batch({"value": pa.array(values, pa.binary())}))
    decoded.rows.validate(full=True)
    return decoded


@pytest.mark.parametrize("name", PRIMITIVES)
@given(data=st.data())
def test_what_the_client_writes_is_read(name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[name] | st.none(), max_size=6))
    encoded = [None if value is None else format_of(name).encode(value) for value in values]
    decoded = decode(name, encoded)
    expected = [str(value) if isinstance(value, UUID) else value for value in values]
    assert (repr(decoded.rows.column("v").to_pylist()), decoded.failures) == (repr(expected), ())


@pytest.mark.parametrize("name", PRIMITIVES)
@given(
    values=st.lists(
        st.binary(max_size=9) | st.none() | st.uuids().map(lambda u: str(u).upper().encode())
    )
)
def test_any_bytes_are_read_as_the_format_reads_them(name: str, values: list[bytes | None]) -> None:
    rows, bad = [], []
    for index, value in enumerate(values):
        try:
            read = None if value is None else format_of(name).decode(value)
            rows.append(str(read) if isinstance(read, UUID) else read)
        except FormatError as error:
            bad.append((index, str(error)))
    decoded = decode(name, values)
    assert repr(decoded.rows.column("v").to_pylist()) == repr(rows)
    assert [(failure.index, failure.message) for failure in decoded.failures] == bad
    if bad:
        origins = [index for index in range(len(values)) if index not in dict(bad)]
        assert decoded.origins.to_pylist() == origins


def test_a_slice_of_a_batch_is_read_from_its_own_beginning() -> None:
    values = pa.array([b"\0\1", b"\0\2", None, b"\0\3"], pa.binary()).slice(1)
    decoded = PrimitiveKernel("short", "v")(pa.record_batch({"value": values}))
    assert decoded.rows.column("v").to_pylist() == [2, None, 3]
