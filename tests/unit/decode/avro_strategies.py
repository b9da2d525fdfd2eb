"""Random Avro schemas, values of them, and later versions of a schema, for hypothesis."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from tests.unit.decode.avro_reference import field, logical, record

Values = st.SearchStrategy[Any]
Typed = tuple[Any, Values]
_EPOCH = datetime(1970, 1, 1)
_MICROS = st.integers(-62135596800000000, 253402300799999999)
_TEXT = st.text(max_size=5)


def _moment(unit: int, zone: timezone | None) -> Values:
    return _MICROS.map(
        lambda micros: (_EPOCH + timedelta(microseconds=micros // unit * unit)).replace(tzinfo=zone)
    )


def _scalars() -> list[Callable[[str], Typed]]:
    """Return types that are made with a name that no other type has."""
    cents = st.integers(1 - 10**9, 10**9 - 1).map(lambda number: Decimal(number).scaleb(-2))
    plain: list[Typed] = [
        ("boolean", st.booleans()),
        ("int", st.integers(-(2**31), 2**31 - 1) | st.integers(-70, 70)),
        ("long", st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)),
        ("float", st.floats(width=32, allow_nan=False)),
        ("double", st.floats(allow_nan=False)),
        ("bytes", st.binary(max_size=5)),
        ("string", _TEXT),
        (logical("string", "uuid"), st.uuids()),
        (logical("int", "date"), st.dates()),
        (logical("int", "time-millis"), st.integers(0, 86399999).map(_time(1000))),
        (logical("long", "time-micros"), st.integers(0, 86399999999).map(_time(1))),
        (logical("long", "timestamp-millis"), _moment(1000, timezone.utc)),
        (logical("long", "timestamp-micros"), _moment(1, timezone.utc)),
        (logical("long", "local-timestamp-micros"), _moment(1, None)),
        (logical("bytes", "decimal", precision=9, scale=2), cents),
    ]
    named: list[Callable[[str], Typed]] = [
        lambda name: (
            {"type": "fixed", "name": name, "size": 3},
            st.binary(min_size=3, max_size=3),
        ),
        lambda name: (
            {"type": "enum", "name": name, "symbols": ["A", "B", "C"]},
            st.sampled_from("ABC"),
        ),
        lambda name: (logical("fixed", "decimal", name=name, size=5, precision=9, scale=2), cents),
        lambda name: (
            logical("fixed", "duration", name=name, size=12),
            st.binary(min_size=12, max_size=12),
        ),
    ]
    return [*((lambda _name, each=each: each) for each in plain), *named]


def _time(unit: int) -> Callable[[int], time]:
    return lambda number: (_EPOCH + timedelta(microseconds=number * unit)).time()


def _several(name: str) -> list[Typed]:
    """Return unions of types that no value is two of."""
    inner = record(field("x", ["null", "int"]), name=name)
    values = st.fixed_dictionaries({"x": st.none() | st.integers(-5, 5)})
    return [
        (
            ["null", "boolean", "double", "string"],
            st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False), _TEXT),
        ),
        (
            [{"type": "array", "items": "string"}, "long", inner, "boolean"],
            st.one_of(st.lists(_TEXT, max_size=2), st.integers(-70, 70), values, st.booleans()),
        ),
    ]


@st.composite
def types(draw: st.DrawFn, depth: int = 2, name: str = "T") -> Typed:
    """Return a schema, and a strategy of values of it."""
    kind = draw(
        st.sampled_from(["scalar"] * 4 + ["null", "array", "map", "record", "union"] * (depth > 0))
    )
    if kind in ("scalar", "union"):
        scalar = draw(st.sampled_from(_scalars()))(name)
        return scalar if kind == "scalar" else draw(st.sampled_from(_several(name)))
    if kind == "record":
        return draw(records(depth - 1, name))
    inner, values = draw(types(depth - 1, f"{name}i"))
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=4)
    if kind == "map":
        return {"type": "map", "values": inner}, st.dictionaries(_TEXT, values, max_size=3)
    return (inner, values) if isinstance(inner, list) else (["null", inner], st.none() | values)


@st.composite
def records(draw: st.DrawFn, depth: int = 3, name: str = "R") -> Typed:
    """Return the schema of a record, and a strategy of values of it."""
    parts = [draw(types(depth, f"{name}{at}")) for at in range(draw(st.integers(1, 4)))]
    schema = record(*(field(f"f{at}", type_) for at, (type_, _) in enumerate(parts)), name=name)
    return schema, st.fixed_dictionaries({f"f{at}": values for at, (_, values) in enumerate(parts)})


_PROMOTED = {
    "int": ["long", "float", "double", ["null", "int"]],
    "long": ["float", "double", ["string", "long"]],
    "float": ["double"],
    "string": ["bytes", ["null", "string"]],
    "bytes": ["string"],
}
_ADDED = [
    ("int", 7),
    (["null", "string"], None),
    ("string", "é"),
    ({"type": "array", "items": "int"}, [1, 2]),
    (record(field("x", "long"), name="Added"), {"x": 5}),
    (logical("int", "date"), 3),
]


@st.composite
def later(draw: st.DrawFn, schema: Any) -> Any:
    """Return another version of a record: fields are removed, added, renamed, promoted, reordered."""
    new = copy.deepcopy(schema)
    for each in new["fields"]:
        change = draw(st.sampled_from(["same", "promote", "rename", "nullable"]))
        type_ = each["type"]
        if change == "promote" and isinstance(type_, str) and type_ in _PROMOTED:
            each["type"] = draw(st.sampled_from(_PROMOTED[type_]))
        elif change == "rename":
            each["aliases"] = [each["name"]]
            each["name"] = f"{each['name']}_new"
        elif change == "nullable" and not isinstance(type_, list):
            each["type"] = ["null", type_]
    kept = [each for each in new["fields"] if draw(st.integers(0, 3))]
    type_, default = draw(st.sampled_from(_ADDED))
    kept.append(field("added", type_, default=default))
    new["fields"] = draw(st.permutations(kept))
    return new
