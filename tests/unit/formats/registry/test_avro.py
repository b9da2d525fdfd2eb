"""Avro values come back as they were written, exactly; what does not fit is refused, both ways."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError, FormatError
from penstock.formats.avro import Avro
from penstock.formats.registry import Reference, Schema

New = Callable[[], Any]
UTC = timezone.utc


def logical(kind: str, logical_type: str, **rest: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **rest}


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    made = [
        {"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields
    ]
    return {"type": "record", "name": name, "fields": made}


DECIMAL = logical("bytes", "decimal", precision=6, scale=2)
FIXED_DECIMAL = logical("fixed", "decimal", name="D", size=3, precision=6, scale=2)
TREE = record(("value", "long"), ("next", ["null", "R"], None))
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}

KEPT = [
    ("null", None),
    ("boolean", True),
    ("int", -(2**31)),
    ("long", 2**63 - 1),
    ("long", -(2**63)),
    ("float", 0.5),
    ("double", 3),
    ("double", float("inf")),
    ("bytes", b"\x00\xff"),
    ("string", "é\U0001f600"),
    ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
    (COLOUR, "BLUE"),
    ({"type": "array", "items": "int"}, [1, 2, 3]),
    ({"type": "map", "values": "string"}, {"a": "1", "": ""}),
    (["null", "int", "string"], None),
    (["null", "int", "string"], "x"),
    (["float", "double"], 0.1),
    (TREE, {"value": 1, "next": {"value": 2, "next": None}}),
    (DECIMAL, Decimal("-1234.50")),
    (DECIMAL, Decimal("0.00")),
    (FIXED_DECIMAL, Decimal("-9999.99")),
    (logical("string", "uuid"), UUID(int=7)),
    (logical("int", "date"), date(1, 1, 1)),
    (logical("int", "time-millis"), time(23, 59, 59, 999_000)),
    (logical("long", "time-micros"), time(1, 2, 3, 4)),
    (logical("long", "timestamp-millis"), datetime(1969, 1, 1, tzinfo=UTC)),
    (logical("long", "timestamp-micros"), datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    (logical("long", "local-timestamp-millis"), datetime(2026, 1, 2)),
    (logical("long", "local-timestamp-micros"), datetime(2026, 1, 2, 3, 4, 5, 6)),
    (logical("long", "timestamp-nanos"), 5),
]

# Here fastavro loses digits, takes a record for a map, or does not know the type.
BETTER = [
    (["float", "double", "long"], 2**40 + 1),
    ([{"type": "map", "values": "double"}, record(("a", "long"))], {"a": 2**60 + 1}),
    (logical("fixed", "uuid", name="U", size=16), UUID(int=7)),
]

REFUSED = [
    ("int", 1.5, "1.5 (float) is not a valid int"),
    ("int", 2**31, "is not a valid int"),
    ("int", True, "True (bool) is not a valid int"),
    ("long", 2**63, "is not a valid long"),
    ("boolean", 1, "1 (int) is not a valid boolean"),
    ("double", 2**53 + 1, "is not a valid double"),
    ("double", 10**400, "is not a valid double"),
    ("double", "1", "'1' (str) is not a valid double"),
    ("float", 1e300, "is not a valid float"),
    ("float", 2**24 + 1, "16777217 (int) is not a valid float"),
    ("string", b"x", "is not a valid string"),
    ("string", "\ud800", "surrogates not allowed"),
    ("bytes", "x", "is not a valid bytes"),
    ({"type": "fixed", "name": "F", "size": 3}, b"ab", "value of 3 bytes"),
    (COLOUR, "GREEN", "is not a valid symbol of Colour"),
    ({"type": "array", "items": "string"}, "abc", "is not a valid array"),
    ({"type": "map", "values": "int"}, {1: 1}, "1 (int) is not a valid string"),
    (["null", "int"], "x", "'x' (str) is not a valid int"),
    (["int", "string"], 1.5, "is not a valid int or string"),
    (record(("a", "int")), {}, "a: is missing, and has no default"),
    (record(("a", "int")), {"a": 1, "b": 2}, "R has no field b"),
    (
        record(("a", record(("b", "int"), name="S"))),
        {"a": {"b": "x"}},
        "a: b: 'x' (str) is not a valid int",
    ),
    (record(("a", "int")), [1], "mapping of the fields of R"),
    (DECIMAL, Decimal("1.234"), "more than 2 digits after the point"),
    (DECIMAL, Decimal("10000"), "is not a decimal(6,2)"),
    (DECIMAL, Decimal("1E+999999999"), "is not a decimal(6,2)"),
    (DECIMAL, Decimal("NaN"), "is not a decimal(6,2)"),
    (DECIMAL, 1.5, "a Decimal is needed"),
    (logical("string", "uuid"), "nonsense", "is not a UUID"),
    (logical("int", "date"), datetime(2026, 1, 1), "a date is needed"),
    (logical("int", "time-millis"), time(0, 0, 0, 1), "finer than the schema's 1000 microseconds"),
    (logical("long", "time-micros"), time(tzinfo=UTC), "has a time zone"),
    (logical("long", "timestamp-millis"), datetime(2026, 1, 1), "has no time zone"),
    (logical("long", "timestamp-millis"), 5, "a datetime is needed"),
    (
        logical("long", "local-timestamp-micros"),
        datetime(2026, 1, 1, tzinfo=UTC),
        "has a time zone",
    ),
]


@pytest.mark.parametrize(("schema", "value"), KEPT, ids=str)
def test_the_bytes_are_those_of_fastavro(new_registry: New, schema: Any, value: Any) -> None:
    avro = Avro(new_registry(), json.dumps(schema))

    data = avro.encode(value, "t")

    expected = io.BytesIO()
    fastavro.schemaless_writer(expected, fastavro.parse_schema(schema), value)
    assert data[5:] == expected.getvalue()
    assert avro.decode(data, "t") == value


@pytest.mark.parametrize(("schema", "value"), [*KEPT, *BETTER], ids=str)
def test_a_value_comes_back_with_its_type(new_registry: New, schema: Any, value: Any) -> None:
    avro = Avro(new_registry(), json.dumps(schema))

    found = avro.decode(avro.encode(value, "t"), "t")

    assert found == value
    assert type(found) is (float if schema == "double" else type(value))


@pytest.mark.parametrize(("schema", "value", "reason"), REFUSED, ids=str)
def test_a_value_that_the_schema_cannot_hold_exactly_is_refused_with_the_reason(
    new_registry: New, schema: Any, value: Any, reason: str
) -> None:
    avro = Avro(new_registry(), json.dumps(schema))

    with pytest.raises(FormatError) as caught:
        avro.encode(value, "t")

    assert reason in str(caught.value)


def test_a_missing_field_is_written_as_its_default(new_registry: New) -> None:
    schema = record(
        ("a", "bytes", "\u00ff"),
        ("b", ["null", "int"], None),
        ("c", {"type": "array", "items": DECIMAL}, ["\u0001"]),
        ("d", record(("x", "int", 5), name="S"), {}),
        ("e", {"type": "map", "values": "int"}, {"k": 1}),
    )
    avro = Avro(new_registry(), schema)

    value = avro.decode(avro.encode({}, "t"), "t")

    assert value == {"a": b"\xff", "b": None, "c": [Decimal("0.01")], "d": {"x": 5}, "e": {"k": 1}}


def evolved(new: New, written: Any, wanted: Any, value: Any) -> Any:
    registry = new()
    data = Avro(registry, json.dumps(written)).encode(value, "t")
    return Avro(registry, json.dumps(wanted)).decode(data, "t")


PLAIN = record(("a", "int"), ("b", "string"))


@pytest.mark.parametrize(
    ("written", "wanted", "value", "expected"),
    [
        (PLAIN, record(("a", "int")), {"a": 1, "b": "x"}, {"a": 1}),
        (PLAIN, record(("c", "long", 9), ("a", "double")), {"a": 1, "b": "x"}, {"c": 9, "a": 1.0}),
        (PLAIN, record(("b", ["null", "bytes"])), {"a": 1, "b": "x"}, {"b": b"x"}),
        ("int", ["string", "double", "long"], 5, 5.0),
        (["null", "int"], "long", 5, 5),
        (COLOUR, {**COLOUR, "symbols": ["RED"], "default": "RED"}, "BLUE", "RED"),
        ("long", logical("long", "timestamp-millis"), 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (TREE, record(("next", ["null", "R"], None)), {"value": 1}, {"next": None}),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "double"}, [1], [1.0]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, {"a": 1}, {"a": 1}),
    ],
)
def test_what_was_written_with_one_schema_is_read_in_the_shape_of_another(
    new_registry: New, written: Any, wanted: Any, value: Any, expected: Any
) -> None:
    found = evolved(new_registry, written, wanted, value)

    assert (found, type(found)) == (expected, type(expected))


def test_a_renamed_field_is_found_by_its_alias(new_registry: New) -> None:
    wanted = record(("z", "int"), name="Other")
    wanted["aliases"] = ["R"]
    wanted["fields"][0]["aliases"] = ["a"]

    assert evolved(new_registry, PLAIN, wanted, {"a": 1, "b": "x"}) == {"z": 1}
    both = record(("a", "int"), ("z", "int"))
    assert evolved(new_registry, both, wanted, {"a": 1, "z": 2}) == {"z": 2}


@pytest.mark.parametrize(
    ("written", "wanted", "value", "reason"),
    [
        ("string", "int", "x", "string was written, and int is wanted"),
        ("long", "int", 1, "long was written, and int is wanted"),
        (
            PLAIN,
            record(("c", "int")),
            {"a": 1, "b": "x"},
            "'c' was not written, and has no default",
        ),
        (
            PLAIN,
            record(("a", "int"), name="Q"),
            {"a": 1, "b": "x"},
            "R was written, and Q is wanted",
        ),
        (["null", "int"], "int", None, "null was written, and int is wanted"),
        (COLOUR, {**COLOUR, "symbols": ["RED"]}, "BLUE", "symbol 'BLUE' is not wanted"),
        (DECIMAL, {**DECIMAL, "scale": 3}, Decimal(1), "scale 2 was written, and 3 is wanted"),
    ],
)
def test_a_schema_that_does_not_fit_the_wanted_one_is_an_error_of_the_record(
    new_registry: New, written: Any, wanted: Any, value: Any, reason: str
) -> None:
    with pytest.raises(FormatError) as caught:
        evolved(new_registry, written, wanted, value)

    assert reason in str(caught.value)


def test_a_branch_that_failed_half_way_leaves_nothing_for_the_next(new_registry: New) -> None:
    wanted = [record(("a", "int"), ("zzz", "int"), name="R"), "string"]

    with pytest.raises(FormatError, match="record was written"):
        evolved(new_registry, [PLAIN, "string"], wanted, {"a": 1, "b": "x"})
    assert evolved(new_registry, [PLAIN, "string"], wanted, "x") == "x"


def test_a_schema_may_refer_to_others_in_the_registry(new_registry: New) -> None:
    registry = new_registry()
    registry.register("money", Schema(json.dumps(record(("cents", "long"), name="shop.Money"))))
    order = Schema(
        json.dumps(record(("total", "shop.Money"), name="shop.Order")),
        references=(Reference("shop.Money", "money", 1),),
    )

    data = Avro(registry, order).encode({"total": {"cents": 5}}, "t")

    assert Avro(registry).decode(data, "t") == {"total": {"cents": 5}}
    assert Avro(registry, order, subject="record").subject_for("t") == "shop.Order"


@pytest.mark.parametrize("text", ["{", '{"type": "recrd"}', "7", '{"type": "record"}', '"Unknown"'])
def test_a_text_that_is_no_schema_is_refused_when_the_format_is_made(
    new_registry: New, text: str
) -> None:
    with pytest.raises(ConfigError, match="not a valid Avro schema"):
        Avro(new_registry(), text)


def test_an_array_whose_items_take_no_bytes_is_refused(new_registry: New) -> None:
    registry = new_registry()
    bomb = Schema('{"type": "array", "items": "null"}')

    with pytest.raises(ConfigError, match="cannot be read safely"):
        Avro(registry, bomb).encode([], "t")
    registry.register("t-value", bomb)
    with pytest.raises(FormatError, match="cannot be read safely"):
        Avro(registry).decode(b"\0\0\0\0\1\xfe\xff\xff\xff\x0f\0", "t")


def test_bytes_that_nest_without_an_end_are_refused(new_registry: New) -> None:
    avro = Avro(new_registry(), TREE)
    data = avro.encode({"value": 0}, "t")

    with pytest.raises(FormatError, match="recursion"):
        avro.decode(data[:5] + b"\0\2" * 100_000, "t")


def test_a_value_that_nests_without_an_end_is_refused(new_registry: New) -> None:
    value: dict[str, Any] = {"value": 1}
    value["next"] = value

    with pytest.raises(FormatError, match="recursion"):
        Avro(new_registry(), TREE).encode(value, "t")


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        ("int", b"\xfe\xff\xff\xff\xff\x01"),
        ("long", b"\xff" * 11),
        ("long", b"\xff" * 9 + b"\x7f"),
        ("boolean", b"\x07"),
        ("string", b"\x01"),
        ("string", b"\x02\xff"),
        (COLOUR, b"\x01"),
        (COLOUR, b"\x04"),
        (["null", "int"], b"\x01\x00"),
        ("double", b"\0"),
        ({"type": "fixed", "name": "F", "size": 3}, b"ab"),
        (logical("int", "date"), b"\xfe\xff\xff\xff\x0f"),
        (logical("int", "time-millis"), b"\x01"),
        (logical("string", "uuid"), b"\x02f"),
        (DECIMAL, b"\x08\x7f\xff\xff\xff"),
        ("int", b"\x02\x02"),
    ],
    ids=str,
)
def test_damaged_bytes_are_refused(new_registry: New, schema: Any, body: bytes) -> None:
    registry = new_registry()
    registry.register("t-value", Schema(json.dumps(schema)))

    with pytest.raises(FormatError, match=r"are no avro of schema 1 in topic 't': ."):
        Avro(registry).decode(b"\0\0\0\0\1" + body, "t")


# A schema with everything in it, and values for it.
ALL = record(
    ("n", ["null", "string"], None),
    ("b", "boolean"),
    ("i", "int"),
    ("l", "long"),
    ("f", "float"),
    ("d", "double"),
    ("y", "bytes"),
    ("e", COLOUR),
    ("a", {"type": "array", "items": ["null", "long", "string"]}),
    ("m", {"type": "map", "values": {"type": "array", "items": "double"}}),
    ("p", DECIMAL),
    ("u", logical("string", "uuid")),
    ("day", logical("int", "date")),
    ("at", logical("long", "timestamp-micros")),
    ("tree", ["null", record(("v", "int"), ("kids", {"type": "array", "items": "T"}), name="T")]),
)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
zones = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
longs = st.integers(-(2**63), 2**63 - 1)
tree = st.recursive(
    st.builds(lambda v: {"v": v, "kids": []}, st.integers(-5, 5)),
    lambda kids: st.builds(lambda v, k: {"v": v, "kids": k}, st.integers(-5, 5), st.lists(kids)),
    max_leaves=5,
)
ALL_VALUES = st.fixed_dictionaries(
    {
        "n": st.none() | text,
        "b": st.booleans(),
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": longs,
        "f": st.floats(width=32, allow_nan=False),
        "d": st.floats(allow_nan=False),
        "y": st.binary(max_size=8),
        "e": st.sampled_from(["RED", "BLUE"]),
        "a": st.lists(st.none() | longs | text, max_size=4),
        "m": st.dictionaries(text, st.lists(st.floats(allow_nan=False), max_size=3), max_size=3),
        "p": st.decimals(-9999, 9999, places=2),
        "u": st.uuids(),
        "day": st.dates(),
        "at": st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=zones),
        "tree": st.none() | tree,
    }
)


@pytest.fixture(scope="module")
def everything(new_registry: New) -> Avro:
    return Avro(new_registry(), ALL)


@given(ALL_VALUES)
def test_any_value_comes_back_and_fastavro_reads_and_writes_the_same(
    everything: Avro, value: dict[str, Any]
) -> None:
    data = everything.encode(value, "t")

    assert everything.decode(data, "t") == value
    parsed = fastavro.parse_schema(ALL)
    assert fastavro.schemaless_reader(io.BytesIO(data[5:]), parsed, None) == value


@given(ALL_VALUES, st.data())
def test_damaged_bytes_give_another_value_or_a_format_error_and_nothing_else(
    everything: Avro, value: dict[str, Any], draw: st.DataObject
) -> None:
    data = bytearray(everything.encode(value, "t"))
    for place in draw.draw(st.lists(st.integers(5, len(data) - 1), min_size=1, max_size=4)):
        data[place] = draw.draw(st.integers(0, 255))
    cut = draw.draw(st.integers(0, len(data)))
    for damaged in (bytes(data), bytes(data[:cut])):
        try:
            found = everything.decode(damaged, "t")
        except FormatError:
            continue
        assert set(found) == set(value)


@given(st.binary(max_size=64))
def test_random_bytes_give_a_format_error_and_nothing_else(new_registry: New, body: bytes) -> None:
    avro = Avro(
        new_registry(), record(("at", logical("long", "timestamp-micros")), ("s", "string"))
    )
    avro.encode({"at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=1), "s": ""}, "t")
    for data in (body, b"\0\0\0\0\1" + body):
        try:
            found = avro.decode(data, "t")
        except FormatError:
            continue
        assert avro.decode(avro.encode(found, "t"), "t") == found
