"""Avro bodies become rows by columns: the values of the client's reader, in the table's types."""

from __future__ import annotations

import io
import pickle
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from tests.unit.decode.avro_reference import body_of, check, field, logical, parsed, record

from penstock.decode.kernels.avro.avro_kernel import AvroBodies, avro_table_schema
from penstock.errors import ConfigError
from penstock.formats.avro.avro_primitives import number_bytes

UTC = timezone.utc
MONEY = logical("bytes", "decimal", precision=20, scale=2)
CASES: list[tuple[Any, str, list[Any]]] = [
    ("boolean", "boolean", [True, False]),
    ("int", "int", [0, -(2**31), 2**31 - 1]),
    ("long", "bigint", [0, -1, 63, 64, -(2**63), 2**63 - 1, 2**55, 2**56, -(2**62)]),
    ("float", "float", [0.5, float("inf")]),
    ("double", "double", [0.1, -1e300]),
    ("bytes", "binary", [b"", b"\0\xff", b"x" * 300]),
    ("string", "string", ["", "é\U0001f600", "x" * 300]),
    ({"type": "fixed", "name": "F", "size": 3}, "binary", [b"abc", b"\0\1\2"]),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "string", ["A", "B"]),
    (logical("string", "uuid"), "string", [UUID(int=7), UUID(int=2**127)]),
    (logical("fixed", "uuid", name="U", size=16), "string", [UUID(int=7), UUID(int=2**128 - 1)]),
    (MONEY, "decimal(20,2)", [Decimal("0.00"), Decimal("-1.01"), Decimal(10**18) - Decimal("0.01")]),
    (
        logical("fixed", "decimal", name="D", size=20, precision=38, scale=0),
        "decimal(38,0)",
        [Decimal(1), Decimal(1 - 10**38), Decimal(10**38 - 1)],
    ),
    (logical("int", "date"), "date", [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)]),
    (logical("int", "time-millis"), "int", [time(), time(23, 59, 59, 999000)]),
    (logical("long", "time-micros"), "bigint", [time(), time.max]),
    *[
        (logical("long", f"timestamp-{unit}"), "timestamp", [datetime(1, 1, 1, tzinfo=UTC), last])
        for unit, last in (
            ("millis", datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)),
            ("micros", datetime.max.replace(tzinfo=UTC)),
        )
    ],
    (logical("long", "local-timestamp-micros"), "timestamp_ntz", [datetime.min, datetime.max]),
    (logical("long", "timestamp-nanos"), "bigint", [1, 2**62]),
    (
        logical("fixed", "duration", name="P", size=12),
        "struct<months:bigint,days:bigint,millis:bigint>",
        [b"\1\0\0\0\2\0\0\0\xff\xff\xff\xff"],
    ),
    ({"type": "array", "items": "double"}, "array<double>", [[], [0.5], [1.5, 2.5, 3.5]]),
    ({"type": "array", "items": ["null", "string"]}, "array<string>", [[None], ["a", None, ""]]),
    (
        {"type": "array", "items": {"type": "array", "items": "long"}},
        "array<array<bigint>>",
        [[], [[], [1]], [[2, 300], [], [4]]],
    ),
    ({"type": "map", "values": "int"}, "map<string,int>", [{}, {"a": 1, "": 2}]),
    (record(field("x", "long"), field("y", ["null", "string"]), name="I"),
     "struct<x:bigint,y:string>", [{"x": 1, "y": None}, {"x": 2, "y": "z"}]),
    (["null", "long"], "bigint", [None, 5]),
    (["null", "long", "string"], "struct<long:bigint,string:string>", [None, 5, "a"]),
    (["long"], "bigint", [5]),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "column", "values"), CASES)
def test_a_type_is_a_column_with_the_values_that_were_written(
    type_: Any, column: str, values: list[Any]
) -> None:
    schema = parsed(record(field("before", "string"), field("c", type_), field("after", "int")))
    nullable = isinstance(type_, list) and "null" in type_
    assert (
        avro_table_schema(schema).fields[1].ddl() == f"c {column}{'' if nullable else ' not null'}"
    )
    bodies = [body_of(schema, {"before": "é", "c": value, "after": 1}) for value in values]

    # Enough rows that no lane is alone, and one batch in which each is.
    assert check(schema, schema, bodies * 40) == len(bodies) * 40
    for body in bodies:
        assert check(schema, schema, [body]) == 1


def test_a_union_of_several_types_sets_the_field_of_the_type_that_was_written() -> None:
    other = record(field("x", "int"), name="ns.Leg")
    schema = parsed(record(field("u", ["null", "int", "long", "string", other])))
    bodies = [b"\0", b"\x02\x02", b"\x04\x02", b"\x06\x02a", b"\x08\x04"]

    rows, failures = AvroBodies(schema, schema)(pa.array(bodies, pa.binary()))

    nothing = dict.fromkeys(("int", "long", "string", "Leg"))
    assert not failures
    assert rows.column("u").to_pylist() == [
        None,
        nothing | {"int": 1},
        nothing | {"long": 1},
        nothing | {"string": "a"},
        nothing | {"Leg": {"x": 2}},
    ]


REFUSED = [
    ("string", "is of type string"),
    (record(field("n", "null")), "n: a column cannot be of the type null"),
    (record(field("n", ["null", "R"])), "contains itself"),
    (record(field("d", logical("bytes", "decimal", precision=39))), "d: a decimal of 39 digits"),
    (record(field("a", "int"), field("A", "int")), "Spark ignores case"),
    (record(), "no fields"),
]


@pytest.mark.parametrize(("schema", "reason"), REFUSED)
def test_a_schema_without_a_table_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        avro_table_schema(parsed(schema))


def test_schemas_that_do_not_resolve_are_refused() -> None:
    with pytest.raises(ConfigError, match="string was written, and int is wanted"):
        AvroBodies(parsed(record(field("a", "string"))), parsed(record(field("a", "int"))))
    with pytest.raises(ConfigError, match="has no default"):
        AvroBodies(parsed(record(field("a", "int"))), parsed(record(field("b", "int"))))
    with pytest.raises(ConfigError, match="items without bytes"):
        unread = parsed(record(field("a", "int"), field("n", {"type": "array", "items": "null"})))
        AvroBodies(unread, parsed(record(field("a", "int"))))


DAMAGED = [
    ("long", b"", "end too early"),
    ("long", b"\x80", "end too early"),
    ("long", b"\xff" * 10 + b"\1", "more than ten bytes"),
    ("long", b"\xff" * 9 + b"\2", "beyond 64 bits"),
    ("int", number_bytes(2**31), "32 bits"),
    ("boolean", b"\2", "neither true nor false"),
    ("double", bytes(7), "end too early"),
    ("string", b"\x02\xff", "utf-8"),
    ("string", b"\x04a", "a length of 2 bytes where 1 are left"),
    ("string", b"\1", "a length of -1"),
    ("string", number_bytes(2**62), "a length of"),
    (["null", "long"], b"\x04", "branch 2 of a union of 2"),
    (["null", "long"], b"\1", "branch -1"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "symbol 1 of an enum"),
    ({"type": "array", "items": "long"}, number_bytes(2**62), "end too early"),
    ({"type": "array", "items": "long"}, number_bytes(-(2**63)) + b"\0", "end too early"),
    ({"type": "array", "items": "double"}, b"\x04" + bytes(12), "end too early"),
    ({"type": "map", "values": "int"}, b"\x02\x02\xff\x02\0", "utf-8"),
    (logical("int", "date"), number_bytes(2932897), "range"),
    (logical("long", "timestamp-millis"), number_bytes(2**62), "large"),
    (logical("int", "time-millis"), number_bytes(86_400_000), "not a time of day"),
    (logical("string", "uuid"), b"\x02a", "badly formed"),
    (MONEY, b"\x12\x7f" + b"\xff" * 8, "more than 20 digits"),
    (MONEY, b"\x24\1" + bytes(17), "more than 20 digits"),
    ("long", b"\x02\0", "1 bytes follow"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "body", "reason"), DAMAGED)
def test_a_damaged_body_is_a_failure_with_its_reason_and_the_others_are_rows(
    type_: Any, body: bytes, reason: str
) -> None:
    schema = parsed(record(field("c", type_)))
    good = {"double": bytes(8), "boolean": b"\1"}.get(str(type_), b"\0")
    if isinstance(type_, dict) and type_.get("logicalType") == "uuid":
        good = b"\x48" + str(UUID(int=7)).encode()
    bodies = [good, body, good, good]

    rows, failures = AvroBodies(schema, schema)(pa.array(bodies, pa.binary()))

    assert check(schema, schema, bodies) == rows.num_rows == 3
    assert [failure.index for failure in failures] == [1]
    assert reason in failures[0].message and failures[0].error_type == "MalformedAvro"


def test_what_the_client_reads_in_an_unusual_form_is_read_here_too() -> None:
    schema = parsed(
        record(
            field("id", logical("string", "uuid")),
            field("money", MONEY),
            field("more", {"type": "map", "values": "long"}),
            field("list", {"type": "array", "items": "int"}),
        )
    )
    upper = str(UUID(int=2**127 - 1)).upper().encode()
    long_money = b"\x32" + b"\xff" * 25
    repeated = b"\x06\x02a\x02\x02b\x04\x02a\x06\0"
    sized_blocks = b"\3\x08\x02\x80\x00\1\x02\x08\0"

    assert check(schema, schema, [b"\x48" + upper + long_money + repeated + sized_blocks] * 2) == 2


@pytest.mark.parametrize("count", [40, 60, 5000])
def test_an_array_is_read_whole_however_many_items_and_blocks_it_has(count: int) -> None:
    leg = record(field("id", "long"), field("name", "string"), name="L")
    types = {"legs": leg, "numbers": "double", "more": "string"}
    kinds = [{"type": "array", "items": types["legs"]}, {"type": "array", "items": "double"}]
    fields = [field("legs", kinds[0]), field("numbers", kinds[1])]
    schema = parsed(record(*fields, field("more", {"type": "map", "values": "string"})))
    values = {
        "legs": [{"id": at * 100, "name": f"n{at}"} for at in range(count)],
        "numbers": [float(at) for at in range(count)],
        "more": {f"k{at}": str(at) for at in range(count)},
    }
    small = {"legs": [], "numbers": [], "more": {}}
    one_by_one = (
        b"".join(b"\x02" + bytes([2 * (at % 60)]) + b"\x02x" for at in range(count)) + b"\0"
    )
    rest = b"".join(b"\x02" + bytes(8) for _ in range(count)) + b"\0" + b"\0"

    bodies = [
        body_of(schema, values),
        one_by_one + rest,
        one_by_one + rest[:-5],
        body_of(schema, small),
    ]
    assert check(schema, schema, bodies) == 3


def test_the_limit_of_memory_is_the_same_as_for_single_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_MAX_DECODED_BYTES", str(2**20))
    leg = record(field("a", "boolean"), name="L")
    nested = {"type": "array", "items": {"type": "array", "items": leg}}
    schema = parsed(record(field("list", nested)))
    sizes = [2400, 2500, 2550, 2560, 2570, 2580, 2600, 5000]
    bodies = [
        b"\x02" + number_bytes(size) + bytes(size) + b"\0\0"
        for size in (*range(2540, 2580), *sizes)
    ]

    assert 0 < check(schema, schema, bodies) < len(bodies)


def test_a_huge_count_takes_no_memory() -> None:
    schema = parsed(record(field("a", {"type": "array", "items": "boolean"})))
    bodies = pa.array([number_bytes(2**40) + b"\0"] * 1000, pa.binary())
    before = pa.total_allocated_bytes()

    rows, failures = AvroBodies(schema, schema)(bodies)

    assert rows.num_rows == 0 and len(failures) == 1000
    assert pa.total_allocated_bytes() - before < 2**20


def test_a_slice_of_bodies_and_no_bodies_are_read() -> None:
    schema = parsed(record(field("a", "string")))
    bodies = pa.array([b"\x02a", b"\x02b", b"\x02c"], pa.binary())
    kernel = AvroBodies(schema, schema)

    assert kernel(bodies.slice(1, 1))[0].to_pylist() == [{"a": "b"}]
    assert kernel(bodies.slice(1, 0))[0].num_rows == 0
    assert kernel(pa.array([], pa.binary()))[0].schema == kernel.arrow_schema


def test_many_bodies_are_read_in_parts_in_their_order() -> None:
    schema = parsed(record(field("a", "long"), field("b", "string")))
    bodies = [body_of(schema, {"a": at, "b": "x" * (at % 300)}) for at in range(20_000)]
    bodies[17_000] = b""

    rows, failures = AvroBodies(schema, schema)(pa.array(bodies, pa.binary()))

    assert [failure.index for failure in failures] == [17_000]
    expected = np.delete(np.arange(20_000), 17_000)
    assert rows.column("a").to_numpy().tolist() == expected.tolist()


def test_a_kernel_is_pickled_by_its_schemas() -> None:
    schema = parsed(record(field("a", "long")))
    kernel = pickle.loads(pickle.dumps(AvroBodies(schema, schema)))

    assert kernel(pa.array([b"\x02"], pa.binary()))[0].to_pylist() == [{"a": 1}]


def test_bodies_of_fastavro_are_read_as_fastavro_reads_them() -> None:
    schema = record(
        field("at", logical("long", "timestamp-micros")), field("n", ["null", "string"])
    )
    rows = [
        {"at": datetime(2024, 1, at, tzinfo=UTC), "n": "x" if at % 2 else None} for at in (1, 2)
    ]
    bodies = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        bodies.append(out.getvalue())

    assert AvroBodies(parsed(schema), parsed(schema))(pa.array(bodies))[0].to_pylist() == rows
