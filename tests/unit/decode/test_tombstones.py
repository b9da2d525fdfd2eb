"""A record without a value is a row of nulls, in its place, with the right metadata."""

from __future__ import annotations

import pyarrow as pa

from penstock.decode.kernels.merging import WithTombstones
from penstock.decode.kernels.outcome import Decoded
from penstock.decode.kernels.parser import ParserKernel
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function


def several(value: str) -> list[dict[str, int]]:
    return [{"n": int(part)} for part in value.split(",")]


def decoded(*values: bytes | None) -> Decoded:
    kernel = ParserKernel(Function("x", value=several), Schema.parse("n int"), ["value"])
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    return WithTombstones(kernel)(batch)


def test_tombstones_stand_where_they_were() -> None:
    found = decoded(None, b"1,2", None, b"oops", b"3", None)
    assert found.rows.column("n").to_pylist() == [None, 1, 2, None, 3, None]
    assert found.origins is not None
    assert found.origins.to_pylist() == [0, 1, 1, 2, 4, 5]
    assert [failure.index for failure in found.failures] == [3]


def test_a_batch_without_one_goes_through_untouched() -> None:
    found = decoded(b"1", b"2")
    assert found.rows.column("n").to_pylist() == [1, 2]


def test_nothing_but_tombstones() -> None:
    found = decoded(None, None)
    assert found.rows.column("n").to_pylist() == [None, None]
    assert found.failures == []
