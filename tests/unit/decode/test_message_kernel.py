"""Arrow and DolphinDB values as rows: exact values by name, an error for each bad record."""

from __future__ import annotations

import sys
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decode.kernels.message_kernel import arrow_kernel, dolphindb_kernel
from penstock.decode.kernels.outcome import Decoded
from penstock.formats import dolphindb, find_format
from penstock.pipeline.exact_cast import InexactError, exact_cast
from penstock.pipeline.schema import Schema

KERNELS = {"arrow": arrow_kernel, "dolphindb": dolphindb_kernel}
BOTH = pytest.mark.parametrize("name", KERNELS)
TABLE = pa.table({"n": pa.array([1, None], pa.int32()), "s": ["a", "é"]})


def decode(name: str, schema: str, *values: Any) -> Decoded:
    format_ = find_format(name)
    given = [
        each if each is None or type(each) is bytes else format_.encode(each) for each in values
    ]
    decoded = KERNELS[name](Schema.parse(schema)).decode(pa.array(given, pa.binary()))
    decoded.rows.validate(full=True)
    return decoded


def column(name: str, schema: str, *values: Any) -> list[Any]:
    decoded = decode(name, f"v {schema}", *values)
    assert not decoded.failures, decoded.failures
    items: list[Any] = decoded.rows.column("v").to_pylist()
    return items


@BOTH
def test_a_table_is_its_rows_and_columns_are_found_by_name(name: str) -> None:
    decoded = decode(name, "s string not null, n bigint, more double", TABLE, TABLE.slice(0, 1))
    assert decoded.rows.to_pylist() == [
        {"s": "a", "n": 1, "more": None},
        {"s": "é", "n": None, "more": None},
        {"s": "a", "n": 1, "more": None},
    ]
    assert decoded.origins is not None
    assert (decoded.origins.to_pylist(), decoded.failures) == ([0, 0, 1], [])


@BOTH
def test_a_vector_is_rows_of_one_column_and_a_scalar_is_one_row(name: str) -> None:
    assert column(name, "bigint", [1, None, 3], 4, [5]) == [1, None, 3, 4, 5]
    assert column(name, "string", ["a"], "b") == ["a", "b"]
    assert column(name, "decimal(10,3)", Decimal("1.5")) == [Decimal("1.500")]


@BOTH
def test_a_mapping_is_one_row(name: str) -> None:
    decoded = decode(name, "s string, n bigint", {"n": 1, "s": "x"}, {"s": "y"})
    assert decoded.rows.to_pylist() == [{"s": "x", "n": 1}, {"s": "y", "n": None}]


@BOTH
@pytest.mark.parametrize(
    ("schema", "value", "error", "message"),
    [
        ("n int, s string", None, "EmptyValue", "the value is null"),
        ("n int, s string", b"", "EmptyValue", "the value is empty"),
        ("n int, s string", b"\x07nonsense", "FormatError", "not a"),
        ("n int, s string", [1, 2], "WrongShape", "found a vector or a scalar"),
        ("n int, s string", {"n": 1, "x": 2}, "UnknownField", "the column 'x' is not declared"),
        ("n int not null, s string", {"s": "a"}, "MissingField", "n: found nothing"),
        ("n int, s string", {"n": 2**40}, "WrongType", "n: found int64, declared int"),
        ("n int, s string", {"n": "1"}, "WrongType", "n: found string, declared int"),
        ("n int, s string", {"s": 1}, "WrongType", "s: found int64, declared string"),
        ("n int, s string", {"n": True}, "WrongType", "n: found bool, declared int"),
    ],
)
def test_a_misfit_is_the_error_of_its_record(
    name: str, schema: str, value: Any, error: str, message: str
) -> None:
    good = {"n": 7, "s": "x"}
    decoded = decode(name, schema, good, value, good)
    assert decoded.rows.to_pylist() == [good, good]
    assert decoded.origins is not None
    assert decoded.origins.to_pylist() == [0, 2]
    (failure,) = decoded.failures
    assert (failure.index, failure.error_type) == (1, error)
    assert failure.message.startswith(message) or error == "FormatError"


@BOTH
def test_one_misfit_among_many_of_one_type_is_found(name: str) -> None:
    values: list[Any] = [[n] for n in range(200)]
    values[77] = [2**40]
    decoded = decode(name, "v int", *values)
    assert [failure.index for failure in decoded.failures] == [77]
    assert decoded.rows.column("v").to_pylist() == [n for n in range(200) if n != 77]


def test_types_that_only_dolphindb_has_are_text_or_their_nearest_type() -> None:
    uuid = UUID(int=7)
    assert column("dolphindb", "string", uuid, [uuid]) == [str(uuid)] * 2
    assert column("dolphindb", "date", dolphindb.Month(2024, 2, 1)) == [date(2024, 2, 1)]
    assert column("dolphindb", "string", dolphindb.Month(2024, 2, 1)) == ["2024-02"]
    assert column("dolphindb", "string", dolphindb.Duration(3, "h")) == ["3 h"]
    assert column("dolphindb", "string", dolphindb.Second(1, 2, 3)) == ["01:02:03"]
    assert column("dolphindb", "timestamp_ntz", dolphindb.Timestamp(2024, 1, 1)) == [
        datetime(2024, 1, 1)
    ]
    assert column("dolphindb", "string", pa.array(["a", "b"]).dictionary_encode()) == ["a", "b"]
    assert column("dolphindb", "array<double>", [[1.5], [2.5, 3.5]]) == [[1.5], [2.5, 3.5]]
    assert column("dolphindb", "int", dolphindb.Pair(pa.array([3, 5], pa.int32()))) == [3, 5]


def test_values_of_dolphindb_without_rows_are_refused() -> None:
    matrix = dolphindb.Matrix(pa.array([1.0, 2.0]), 1, 2)
    decoded = decode("dolphindb", "v double", matrix, dolphindb.AnyVector([1, "a"]), {1: 2.0})
    assert [failure.error_type for failure in decoded.failures] == ["WrongShape"] * 3


def test_nested_values_keep_their_structure() -> None:
    schema = "a array<int>, m map<string,double>, s struct<x: int not null, y: array<string>>"
    table = pa.table(
        {
            "a": pa.array([[1, None], None, []], pa.large_list(pa.int64())),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
            "s": pa.array([{"x": 1, "y": ["p"]}, None, {"x": 2, "y": None}]),
        }
    )
    decoded = decode("arrow", schema, table, table.slice(1))
    expected = [
        {"a": [1, None], "m": [("k", 1.0)], "s": {"x": 1, "y": ["p"]}},
        {"a": None, "m": None, "s": None},
        {"a": [], "m": [], "s": {"x": 2, "y": None}},
    ]
    assert decoded.rows.to_pylist() == [*expected, *expected[1:]]
    inner = pa.table({"s": pa.array([{"x": None, "y": None}], pa.struct([("x", pa.int32())]))})
    (failure,) = decode("arrow", schema, inner).failures
    assert failure.message.startswith("s.x: found")


MOMENT = datetime(2024, 1, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("array", "wanted", "expected"),
    [
        (pa.array([1.0], pa.float64()), pa.int32(), 1),
        (pa.array([0.5], pa.float64()), pa.float32(), 0.5),
        (pa.array([5], pa.uint64()), pa.decimal128(3, 2), Decimal("5.00")),
        (pa.array([Decimal("5.00")]), pa.int16(), 5),
        (pa.array([date(2024, 1, 1)], pa.date64()), pa.date32(), date(2024, 1, 1)),
        (pa.array([MOMENT]), pa.timestamp("us", "UTC"), MOMENT),
        (pa.array([MOMENT.replace(tzinfo=None)]), pa.timestamp("us", "UTC"), MOMENT),
        (pa.array([time(1, 2, 3, 4)]), pa.string(), "01:02:03.000004"),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), b"ab"),
        (pa.array(["a"], pa.string_view()), pa.string(), "a"),
        (pa.nulls(1), pa.int32(), None),
        (pa.array([UUID(int=1).bytes], pa.uuid()), pa.string(), str(UUID(int=1))),
        (pa.array([3, 3]).run_end_encode() if hasattr(pa.Array, "run_end_encode")
         else pa.compute.run_end_encode(pa.array([3])), pa.int64(), 3),
    ],
)  # fmt: skip
def test_a_cast_keeps_the_value(array: pa.Array, wanted: pa.DataType, expected: Any) -> None:
    assert exact_cast(array, wanted)[0].as_py() == expected


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([1.5]), pa.int32()),
        (pa.array([0.1]), pa.float32()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([2**53 + 1]), pa.float64()),
        (pa.array([100]), pa.decimal128(4, 2)),
        (pa.array([Decimal("1.25")]), pa.decimal128(10, 1)),
        (pa.array([Decimal("1.25")]), pa.int64()),
        (pa.array([0.5]), pa.decimal128(10, 1)),
        (pa.array([1]), pa.string()),
        (pa.array([1]), pa.bool_()),
        (pa.array([1]), pa.timestamp("us")),
        (pa.array([b"a"]), pa.string()),
        (pa.array([MOMENT]), pa.timestamp("us")),
        (pa.array([MOMENT]), pa.date32()),
        (pa.array([1001], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([10**15], pa.timestamp("ms")), pa.timestamp("us")),
        (pa.array([4_000_000], pa.date32()), pa.date32()),
    ],
)
def test_a_cast_that_would_change_the_value_is_refused(
    array: pa.Array, wanted: pa.DataType
) -> None:
    with pytest.raises(InexactError):
        exact_cast(array, wanted)


# Without what DolphinDB takes for null: the least number of each type.
numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.none()
least = -sys.float_info.max
doubles = st.floats(allow_nan=False).filter(lambda number: number != least) | st.none()
cells = {
    "bigint": (pa.int64(), numbers),
    "double": (pa.float64(), doubles),
    "string": (pa.string(), st.text(max_size=5).filter(lambda text: "\0" not in text)),
    "boolean": (pa.bool_(), st.booleans() | st.none()),
    "date": (pa.date32(), st.dates() | st.none()),
}


@st.composite
def tables(draw: Any) -> tuple[str, list[pa.Table]]:
    names = draw(st.lists(st.sampled_from(sorted(cells)), min_size=1, max_size=4))
    kinds = {f"c{at}": cells[name] for at, name in enumerate(names)}
    given = []
    for count in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)):
        every = {
            name: pa.array(draw(st.lists(items, min_size=count, max_size=count)), type_)
            for name, (type_, items) in kinds.items()
        }
        given.append(pa.table(every))
    return ", ".join(f"c{at} {name}" for at, name in enumerate(names)), given


@BOTH
@given(case=tables())
def test_tables_of_the_client_are_read_as_they_were(name: str, case: Any) -> None:
    schema, given = case
    decoded = decode(name, schema, *given)
    read_back = [
        row
        for each in given
        for row in find_format(name).decode(find_format(name).encode(each)).to_pylist()
    ]
    assert (decoded.rows.to_pylist(), decoded.failures) == (read_back, [])


def shared_text() -> bytes:
    text = pa.array(["x" * 100_000])
    column_ = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), text)
    return find_format("arrow").encode(pa.table({"v": column_}))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("dolphindb", b"\x04\x01" + b"\xff\xff\xff\x7f" + b"\x01\0\0\0"),
        ("dolphindb", b"\x12\x01" + b"\xff\xff\xff\x7f" + b"\x01\0\0\0"),
        ("dolphindb", b"\x00\x01" + b"\xff\xff\xff\x7f" + b"\x01\0\0\0"),
        ("arrow", shared_text()),
    ],
)
def test_a_small_value_that_declares_a_huge_vector_is_refused(name: str, data: bytes) -> None:
    decoded = KERNELS[name](Schema.parse("v string")).decode(pa.array([data], pa.binary()))
    assert (decoded.rows.num_rows, len(decoded.failures)) == (0, 1)


def test_columns_that_a_message_lacks_count_towards_its_size() -> None:
    data = pa.array([find_format("arrow").encode(pa.table({"v": pa.nulls(2_000_000)}))])
    wide = ", ".join(["v string", *(f"c{at} bigint" for at in range(20))])
    assert arrow_kernel(Schema.parse("v string")).decode(data).rows.num_rows == 2_000_000
    (failure,) = arrow_kernel(Schema.parse(wide)).decode(data).failures
    assert "bytes when decoded; allowed are" in failure.message


@BOTH
def test_a_mapping_without_members_is_a_failure_and_not_a_row_that_vanishes(name: str) -> None:
    decoded = decode(name, "n bigint", {"n": 1}, {}, {"n": 2})
    assert decoded.rows.to_pylist() == [{"n": 1}, {"n": 2}]
    assert [(each.index, each.error_type) for each in decoded.failures] == [(1, "WrongShape")]


@pytest.mark.parametrize("nested", [False, True])
def test_a_name_that_is_not_utf8_is_a_failure_of_its_record(nested: bool) -> None:
    name = "name_to_damage"
    row = {"s": {name: 1}} if nested else {name: 1}
    damaged = (
        find_format("arrow").encode(pa.Table.from_pylist([row])).replace(b"name_to", b"\xff" * 7)
    )
    decoded = decode("arrow", f"s struct<{name}: bigint>, {name} bigint", damaged, {name: 2})
    assert decoded.rows.column(name).to_pylist() == [2]
    assert [(each.index, each.error_type) for each in decoded.failures] == [(0, "FormatError")]


def test_a_type_that_python_cannot_read_is_a_failure_of_its_record() -> None:
    good = find_format("arrow").encode(pa.table({"d": pa.array([date(2024, 1, 1)])}))
    damaged = [good[:at] + b"\x0b" + good[at + 1 :] for at, sign in enumerate(good) if sign == 8]
    intervals = [each for each in damaged if "month_interval" in _types(each)]
    assert len(intervals) == 1
    decoded = decode("arrow", "d date", *intervals, good)
    assert decoded.rows.to_pylist() == [{"d": date(2024, 1, 1)}]
    assert [(each.index, each.error_type) for each in decoded.failures] == [(0, "FormatError")]


def _types(stream: bytes) -> list[str]:
    try:
        return [str(field.type) for field in pa.ipc.open_stream(stream).schema]
    except (pa.ArrowException, OSError):
        return []
