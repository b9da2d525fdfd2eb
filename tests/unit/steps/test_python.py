"""The step `python`: a value of its result is the same in the type of its column, or is refused."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import RefusedError
from penstock.steps.python import _as_batches

DAY = datetime(2024, 8, 30)
NOON = datetime(2024, 8, 30, 12)
LOCAL, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")


def fitted(column: Any, wanted: pa.DataType) -> list[Any]:
    columns = pa.schema([pa.field("a", wanted)])
    table, batch = pa.table({"a": column}), pa.record_batch({"a": column})
    parts = _as_batches(table, columns, "function")
    assert _as_batches(batch, columns, "function")[0].column("a").type == wanted
    return [value for part in parts for value in part.column("a").to_pylist()]


@pytest.mark.parametrize(
    ("column", "wanted", "expected"),
    [
        (pa.array([1.0, None]), pa.int64(), [1, None]),
        (pa.array([0.5]), pa.float32(), [0.5]),
        (pa.array([float("nan"), float("inf")]).slice(1), pa.float32(), [float("inf")]),
        (pa.array([1]), pa.decimal128(10, 2), [Decimal("1.00")]),
        (pa.array([Decimal("1.5")]), pa.decimal128(10, 2), [Decimal("1.50")]),
        (pa.array([DAY]), pa.date32(), [date(2024, 8, 30)]),
        (pa.array([NOON], pa.timestamp("ns")), LOCAL, [NOON]),
        (pa.array([timedelta(1)], pa.duration("ns")), pa.duration("us"), [timedelta(1)]),
        (pa.array([b"a"]), pa.string(), ["a"]),
        (
            pa.array([[(1, 2.0)]], pa.map_(pa.int64(), pa.float64())),
            pa.map_("int64", "int64"),
            None,
        ),
        (pa.array([None], pa.float64()), pa.string(), [None]),
    ],
)
def test_a_value_that_stays_the_same_is_cast(
    column: pa.Array, wanted: pa.DataType, expected: list[Any] | None
) -> None:
    assert fitted(column, wanted) == (column.to_pylist() if expected is None else expected)


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array([NOON]), pa.date32()),
        (pa.array([NOON], UTC), LOCAL),
        (pa.array([1]), UTC),
        (pa.array([1], pa.int32()), pa.date32()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([0.5]), pa.bool_()),
        (pa.array([True]), pa.int64()),
        (pa.array([5]), pa.string()),
        (pa.array([0.126]), pa.decimal128(10, 2)),
        (pa.array([Decimal("123456789012345678.12")]), pa.float64()),
        (pa.array([["5"]]), pa.list_(pa.int64())),
        (pa.array(["5"]).dictionary_encode(), pa.int64()),
        (pa.array([b"\xff"]), pa.string()),
    ],
)
def test_a_value_that_would_change_is_refused(column: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(RefusedError, match="function: the column 'a' is not ") as refused:
        fitted(column, wanted)
    assert refused.value.stage == "step"
