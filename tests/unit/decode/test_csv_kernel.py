"""The CSV kernel: bulk and single reading agree; every bad record has an error of its own."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decode.kernels.csv_kernel import CsvKernel
from penstock.decode.kernels.csv_lines import CsvDialect
from penstock.decode.kernels.outcome import Decoded
from penstock.errors import ConfigError
from penstock.pipeline.schema import Schema

PLAIN = Schema.parse("n int not null, s string")
EVERYTHING = Schema.parse(
    "b boolean, t tinyint, l bigint, f float, d double, de decimal(5,2), s string, bi binary, da date, "
    "ti timestamp, nt timestamp_ntz"
)


def decode(*values: bytes | None, schema: Schema = PLAIN, **options: Any) -> Decoded:
    header = options.pop("header", False)
    kernel = CsvKernel(schema, CsvDialect(**options), header=header)
    return kernel.decode(pa.array(values, pa.binary()))


def rows(decoded: Decoded) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in decoded.rows.to_pylist()]


def one_failure(value: bytes | None, **options: Any) -> tuple[str, str]:
    good = b"n,s\n7,x" if options.get("header") else b"7,x"
    decoded = decode(good, value, good, **options)
    assert rows(decoded) == [(7, "x"), (7, "x")]
    assert decoded.origins is not None
    assert decoded.origins.to_pylist() == [0, 2]
    (failure,) = decoded.failures
    assert failure.index == 1
    return failure.error_type, failure.message


def test_every_type_is_read() -> None:
    line = b"true,-1,9223372036854775807,0.5,1e3,1.50,\xc3\xa9,aGk=,2024-02-29,2024-01-01T02:00:00+02:00,"
    line += b"2024-01-01 02:00:00.5"
    expected = (
        True, -1, 2**63 - 1, 0.5, 1000.0, Decimal("1.50"), "é", b"hi", date(2024, 2, 29),
        datetime(2024, 1, 1, tzinfo=timezone.utc), datetime(2024, 1, 1, 2, 0, 0, 500_000),
    )  # fmt: skip
    nothing = b"," * (len(EVERYTHING.names) - 1)
    decoded = decode(line, nothing, schema=EVERYTHING)
    assert (rows(decoded), list(decoded.failures)) == ([expected, (None,) * len(expected)], [])


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_record_may_have_several_lines(end: bytes) -> None:
    decoded = decode(b"1,a" + end, b"2,b\n3,c" + end, b'4,"x\ny"\r\n5,' + end)
    assert rows(decoded) == [(1, "a"), (2, "b"), (3, "c"), (4, "x\ny"), (5, None)]
    assert decoded.origins is not None
    assert decoded.origins.to_pylist() == [0, 1, 1, 2, 2]


def test_quotes_delimiters_and_nulls() -> None:
    decoded = decode(b'1,"a,""b"""', b'2,""', b"3,", b'4,5" disk')
    assert rows(decoded) == [(1, 'a,"b"'), (2, ""), (3, None), (4, '5" disk')]
    other = decode(b"1;NA", b"2;'NA'", b"3;", delimiter=";", quote="'", null="NA")
    assert rows(other) == [(1, None), (2, "NA"), (3, "")]
    assert rows(decode(b'1,"x', quote=None)) == [(1, '"x')]


def test_an_escape_makes_the_next_character_part_of_the_field() -> None:
    decoded = decode(rb"1,a\,b", rb'2,"a\"b"', rb"3,\N", rb"4,\\", escape="\\", null=r"\N")
    assert rows(decoded) == [(1, "a,b"), (2, 'a"b'), (3, None), (4, "\\")]


def test_a_header_names_the_columns_in_any_order() -> None:
    decoded = decode(b"s,n\na,1\nb,2", b"s,n\nc,3\n", b"n,s\n4,d", b"n,s\n", header=True)
    assert rows(decoded) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert not decoded.failures
    assert rows(decode(b"s,n\na,1\nb,2", b"s,n\nc,3\n", header=True)) == [
        (1, "a"), (2, "b"), (3, "c"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, "EmptyValue", "the value is null"),
        (b"", "EmptyValue", "the value is empty"),
        (b"x,a", "WrongType", "line 1, n: found the text 'x', declared int"),
        (b" 1,a", "WrongType", "line 1, n: found the text ' 1'"),
        (b"0x1f,a", "WrongType", "line 1, n: found the text '0x1f'"),
        (b"2147483648,a", "WrongType", "line 1, n: found the text '2147483648'"),
        (b"1,a\nx,b", "WrongType", "line 2, n: found the text 'x'"),
        (b",a", "MissingField", "line 1, n: found null, declared int not null"),
        (b"1", "MissingField", "line 1: found 1 fields, declared 2"),
        (b"1,a\n\n", "MissingField", "line 2: found 1 fields, declared 2"),
        (b"1,a,b", "UnknownField", "line 1: found 3 fields, declared 2"),
        (b'1,"a', "MalformedCsv", "character 3: a field in quotes"),
        (b'1,"a"b', "MalformedCsv", "character 3: a field in quotes"),
        (b"1,\xff", "NotUtf8", "not UTF-8: byte 2"),
        (b"1,a\n" * 2_000_000, "TooLarge", "a CSV record takes"),
    ],
)
def test_a_bad_record_is_its_own_error(value: bytes | None, error: str, message: str) -> None:
    found = one_failure(value)
    assert found[0] == error
    assert found[1].startswith(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"n\n1", "the header lacks the column 's'"),
        (b"n,s,s\n1,a,a", "the header has a name twice"),
        (b"n,s,x\n1,a,a", "the header has 'x', which is not declared"),
        (b"n,s\n1", "line 2: found 1 fields, declared 2"),
    ],
)
def test_a_header_that_does_not_fit_is_an_error(value: bytes, message: str) -> None:
    assert one_failure(value, header=True)[1].startswith(message)


def test_one_bad_record_among_many_is_found() -> None:
    values = [b"%d,a" % n for n in range(3000)]
    values[1234] = b"x,a"
    decoded = decode(*values)
    assert [failure.index for failure in decoded.failures] == [1234]
    assert decoded.rows.column("n").to_pylist() == [n for n in range(3000) if n != 1234]
    assert decoded.origins is not None
    assert decoded.origins.to_pylist() == decoded.rows.column("n").to_pylist()


def test_one_line_for_each_record_needs_no_origins() -> None:
    assert decode(b"1,a", b"2,b").origins is None
    assert decode().rows.num_rows == 0


def test_nested_columns_are_refused() -> None:
    with pytest.raises(ConfigError, match="a field of CSV is one text, not array<int>"):
        CsvKernel(Schema.parse("a array<int>"))


numbers = [
    "1",
    "-0",
    "007",
    "1.5",
    "1e3",
    ".5",
    "1.",
    "+1",
    "NaN",
    "Infinity",
    "inf",
    "1e999",
    "0x1",
    " 1",
]
signs = [
    "true",
    "True",
    "x",
    "é",
    '"',
    '""',
    "\\",
    ",",
    ",,",
    "\n",
    "\r",
    "\r\n",
    "\ufeff",
    "\0",
    "NA",
]
others = [
    "2024-01-01",
    "2024-01-01T00:00:00Z",
    "2024-01-01 00:00:00+01",
    "99.999",
    "1234567.8",
    "aGk=",
]
pieces = st.sampled_from([*numbers, *signs, *others])
texts = st.lists(pieces, max_size=8).map(lambda parts: "".join(parts).encode())
types = st.sampled_from([field.type.ddl() for field in EVERYTHING.fields])
schemas = st.lists(types, min_size=1, max_size=3).map(
    lambda ddl: Schema.parse(", ".join(f"c{at} {each}" for at, each in enumerate(ddl)))
)
dialects = st.builds(
    CsvDialect,
    quote=st.sampled_from(['"', None]),
    escape=st.sampled_from([None, "\\"]),
    null=st.sampled_from(["", "NA"]),
)


def by_record(kernel: CsvKernel, values: list[bytes]) -> list[Any]:
    """Return what the single reading makes of each record: its rows, or None."""
    found = []
    for value in values:
        failures: list[Any] = []
        part = kernel._one_by_one(pa.array([value], pa.binary()), 0, failures)
        found.append(None if failures else [repr(row) for row in part.rows.to_pylist()])
    return found


@given(schemas, dialects, st.booleans(), st.lists(texts | st.binary(max_size=4), max_size=5))
def test_reading_in_bulk_gives_what_reading_each_record_gives(
    schema: Schema, dialect: CsvDialect, header: bool, values: list[bytes]
) -> None:
    kernel = CsvKernel(schema, dialect, header=header)
    if header:
        values = [",".join(schema.names).encode() + b"\n" + value for value in values]
    decoded = kernel.decode(pa.array(values, pa.binary()))
    decoded.rows.validate(full=True)
    expected = by_record(kernel, values)
    bad = [at for at, each in enumerate(expected) if each is None]
    assert [failure.index for failure in decoded.failures] == bad
    good = [row for each in expected if each is not None for row in each]
    assert [repr(row) for row in decoded.rows.to_pylist()] == good


@given(schemas, st.lists(texts, min_size=1, max_size=5))
def test_what_is_accepted_at_once_is_accepted_alone(schema: Schema, values: list[bytes]) -> None:
    kernel = CsvKernel(schema)
    try:
        part = kernel._all_at_once(pa.array(values, pa.binary()), 0)
    except Exception:
        part = None
    if part is not None:
        rows = [row for each in by_record(kernel, values) for row in each]
        assert [repr(row) for row in part.rows.to_pylist()] == rows
