"""Bodies of other versions of a schema are rows of the wanted one, as Avro's rules resolve the two."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.decode.avro_reference import (
    body_of,
    check,
    field,
    logical,
    parsed,
    plain,
    record,
    same,
)
from tests.unit.decode.avro_strategies import later, records

from penstock.decode.kernels.avro.avro_kernel import AvroBodies
from penstock.errors import ConfigError
from penstock.formats.avro.avro_primitives import number_bytes

DAY = logical("int", "date")
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
def test_rows_are_what_fastavro_and_the_client_read(data: st.DataObject) -> None:
    schema, values = data.draw(records())
    reader = parsed(schema)
    bodies = [body_of(reader, data.draw(values)) for _ in range(data.draw(st.integers(1, 5)))]

    assert check(reader, reader, bodies) == len(bodies)
    rows = AvroBodies(reader, reader)(pa.array(bodies, pa.binary()))[0].to_pylist()
    for row, body in zip(rows, bodies, strict=True):
        other = fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(schema), None)
        assert same(plain(row, reader.root, reader.names), other)


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
def test_another_version_is_read_as_the_client_reads_it(data: st.DataObject) -> None:
    schema, values = data.draw(records())
    written, wanted = parsed(schema), parsed(data.draw(later(schema)))
    bodies = [body_of(written, data.draw(values)) for _ in range(data.draw(st.integers(1, 5)))]
    damaged = [body[:-1] for body in bodies]

    check(written, wanted, [*bodies, *damaged, b""])


def test_twenty_versions_are_read_as_the_last_one() -> None:
    versions = [
        parsed(
            record(
                field("id", "int" if version < 10 else "long"),
                *(
                    field(f"v{at}", ["null", "string"], default=None)
                    for at in range(max(0, version - 5), version)
                ),
                field("side", {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}),
            )
        )
        for version in range(20)
    ]
    last = versions[-1]
    for version, written in enumerate(versions):
        names = [f"v{at}" for at in range(max(0, version - 5), version)]
        value: dict[str, Any] = {"id": version, "side": "SELL"} | dict.fromkeys(names, "x")
        bodies = [body_of(written, value)] * 3

        assert check(written, last, bodies) == 3
        for name in ("id", "side"):
            rows = AvroBodies(written, last)(pa.array(bodies))[0].to_pylist()
            assert rows[2][name] == value[name]


@pytest.mark.parametrize(
    ("left_out", "body"),
    [
        (["null", record(field("next", ["null", "N"]), name="N")], b"\x02\x02\0"),
        (logical("bytes", "decimal", precision=50), b"\x02\x05"),
        (record(field("nothing", "null"), name="M"), b""),
        ("string", b"\x02\xff"),
        (logical("string", "uuid"), b"\x02a"),
        (logical("int", "date"), b"\xfe\xff\xff\xff\x0f"),
    ],
)
def test_a_field_that_is_left_out_is_checked_all_the_same(left_out: Any, body: bytes) -> None:
    written = parsed(record(field("a", "int"), field("x", left_out), field("b", "int")))
    wanted = parsed(record(field("b", "int"), field("a", "int")))

    check(written, wanted, [b"\x02" + body + b"\x04", b"\x02" + body, b"\x02"] * 2)


def test_the_memory_of_a_field_that_is_left_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAX_DECODED_BYTES", str(2**20))
    tree = record(field("next", {"type": "array", "items": "N"}), name="N")
    written = parsed(record(field("a", "int"), field("x", tree), field("y", "N")))
    wanted = parsed(record(field("a", "int")))
    values = [
        number_bytes(size) + bytes(size) + b"\0" for size in (1, 1200, 1270, 1280, 1290, 2600)
    ]

    good = check(written, wanted, [b"\x02" + value * 2 for value in values])

    assert 0 < good < len(values)


def test_a_branch_or_a_symbol_that_is_not_wanted_matters_only_where_it_is_written() -> None:
    old = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    new = {"type": "enum", "name": "E", "symbols": ["A"]}
    written = parsed(record(field("u", ["int", "string"]), field("e", old)))
    wanted = parsed(record(field("u", "long"), field("e", new)))

    assert check(written, wanted, [b"\0\x02\0", b"\x02\x02a\0", b"\0\x02\x02"]) == 1


def test_an_enum_without_symbols_fails_only_the_record_that_has_one() -> None:
    empty = {"type": "enum", "name": "E", "symbols": []}
    schema = parsed(record(field("x", ["null", empty]), field("y", "int")))

    assert check(schema, schema, [b"\0\x02", b"\x02\0\x02", b"\0\x04"]) == 2


@pytest.mark.parametrize(("names", "body"), [(("old", "new"), b"\2\4"), (("new", "old"), b"\4\2")])
def test_an_alias_is_not_used_where_a_field_has_the_wanted_name(
    names: tuple[str, str], body: bytes
) -> None:
    written = parsed(record(*(field(name, "int") for name in names)))
    wanted = parsed(record(field("new", "int", aliases=["old"])))

    assert check(written, wanted, [body]) == 1
    assert AvroBodies(written, wanted)(pa.array([body]))[0].to_pylist() == [{"new": 2}]


@pytest.mark.parametrize(
    ("union", "default", "value"),
    [
        (["double", "long"], 5, {"double": 5.0, "long": None}),
        (["long", "double"], 5, {"long": 5, "double": None}),
        (["long", "double"], 5.5, {"long": None, "double": 5.5}),
        (["float", "double"], 0.5, {"float": 0.5, "double": None}),
        (["bytes", "string"], "\u00ff", {"bytes": b"\xff", "string": None}),
        (["bytes", "string"], "\u0100", {"bytes": None, "string": "\u0100"}),
        (["null", "bytes"], "abc", b"abc"),
        (["null", "double", "long"], None, None),
    ],
)
def test_the_default_of_a_union_is_of_the_first_branch_that_takes_it(
    union: Any, default: Any, value: Any
) -> None:
    written = parsed(record(field("x", "int")))
    wanted = parsed(record(field("x", "int"), field("d", union, default=default)))

    assert check(written, wanted, [b"\2"]) == 1
    rows = AvroBodies(written, wanted)(pa.array([b"\2"], pa.binary()))[0]
    assert rows.to_pylist() == [{"x": 1, "d": value}]


def test_a_default_that_does_not_fit_fails_each_record_as_for_the_client() -> None:
    written = parsed(record(field("a", "int")))
    wanted = parsed(record(field("a", "int"), field("b", DAY, default=2**24)))

    rows, failures = AvroBodies(written, wanted)(pa.array([b"\x02"], pa.binary()))

    assert rows.num_rows == 0
    assert "out of range" in failures[0].message


@pytest.mark.parametrize(
    ("old", "new", "body"),
    [
        ("int", "double", b"\x03"),
        ("long", "float", b"\xff" * 8 + b"\x7f"),
        ("string", logical("bytes", "decimal", precision=4), b"\x02\x05"),
        ("string", logical("bytes", "decimal", precision=4), b"\x02\xff"),
        ("bytes", "string", b"\x02\xff"),
        ("bytes", logical("string", "uuid"), b"\x02a"),
        ("int", logical("long", "timestamp-millis"), b"\x04"),
        (["null", "int"], ["string", "null", "long"], b"\x02\x05"),
        ("int", ["string", "double", "long"], b"\x02"),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": ["null", "double"]},
            b"\x04\2\4\0",
        ),
    ],
)
def test_a_promotion_gives_the_value_that_the_client_gives(old: Any, new: Any, body: bytes) -> None:
    check(parsed(record(field("a", old))), parsed(record(field("a", new))), [body] * 3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (logical("long", "timestamp-millis"), logical("long", "timestamp-micros")),
        (logical("long", "timestamp-micros"), logical("long", "timestamp-millis")),
        (logical("long", "timestamp-nanos"), logical("long", "local-timestamp-micros")),
        (logical("int", "time-millis"), logical("long", "time-micros")),
        (DAY, logical("long", "timestamp-millis")),
    ],
)
def test_a_time_of_another_unit_is_refused_not_taken_for_one_of_this(old: Any, new: Any) -> None:
    written, wanted = parsed(record(field("t", old))), parsed(record(field("t", new)))
    with pytest.raises(ConfigError, match=f"{old['logicalType']} was written"):
        AvroBodies(written, wanted)


def test_a_time_keeps_its_number_where_only_the_zone_or_the_logical_type_changes() -> None:
    number = number_bytes(1_700_000_000_000)
    for new in ("long", logical("long", "local-timestamp-millis")):
        written = parsed(record(field("t", logical("long", "timestamp-millis"))))
        assert check(written, parsed(record(field("t", new))), [number]) == 1
