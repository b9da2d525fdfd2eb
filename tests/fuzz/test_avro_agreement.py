"""Damaged Avro bodies: the columnar reader returns and refuses what the client's reader does.

`PENSTOCK_AVRO_FUZZ=1000000` sets the number of bodies.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.fuzz.mutations import BLOCK, inputs
from tests.unit.decode.avro_reference import body_of, check, field, logical, parsed, record

BODIES = int(os.environ.get("PENSTOCK_AVRO_FUZZ", "20000"))
LEG = record(field("id", "long"), field("px", "double"), field("name", "string"), name="Leg")
FIELDS: dict[str, list[Any]] = {
    "scalars": [
        field("id", "long"), field("small", "int"), field("flag", "boolean"), field("name", "string"),
        field("price", "double"), field("ratio", "float"), field("raw", "bytes"),
        field("code", {"type": "fixed", "name": "F", "size": 3}),
        field("side", {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}),
    ],
    "logical": [
        field("day", logical("int", "date")), field("at", logical("long", "timestamp-millis")),
        field("local", logical("long", "local-timestamp-micros")),
        field("clock", logical("int", "time-millis")), field("key", logical("string", "uuid")),
        field("money", logical("bytes", "decimal", precision=9, scale=2)),
        field("period", logical("fixed", "duration", name="P", size=12)),
    ],
    "nested": [
        field("legs", {"type": "array", "items": LEG}), field("more", {"type": "map", "values": "int"}),
        field("numbers", {"type": "array", "items": "double"}),
        field("either", ["null", "long", "string", {"type": "array", "items": "boolean"}]),
        field("lists", {"type": "array", "items": {"type": "array", "items": ["null", "int"]}}),
    ],
}  # fmt: skip
LATER: dict[str, list[Any]] = {
    "scalars": [
        field("title", ["null", "bytes"], aliases=["name"]), field("small", "double"),
        field("new", "string", default="x"), field("price", ["null", "string", "double"]),
        field("side", {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}),
    ],
    "logical": [field("at", "long"), field("day", ["null", logical("int", "date")])],
    "nested": [
        field("either", ["string", "null", "double"]), field("more", {"type": "map", "values": "long"}),
        field("legs", {"type": "array", "items": record(field("name", "string"), name="Leg")}),
    ],
}  # fmt: skip
SEEDS: dict[str, list[dict[str, Any]]] = {
    "scalars": [
        {"id": at * 12345678901, "small": -at, "flag": True, "name": "é" * at, "price": 1.5,
         "ratio": 0.5, "raw": b"ab", "code": b"abc", "side": "B"}
        for at in range(3)
    ],
    "nested": [
        {"legs": [{"id": at, "px": 0.5, "name": "n"}] * count, "more": {"a": 1, "b": 2},
         "numbers": [1.5] * at, "either": either, "lists": [[1, None], [], [300]]}
        for at, (count, either) in enumerate([(0, None), (2, 5), (5, "x"), (60, [True, False])])
    ],
}  # fmt: skip
_UUID = b"\x4800000000-0000-0000-0000-000000000007"
RAW = {"logical": [b"\x06\xfe\xff\x03\x07\x08" + _UUID + b"\x04\1\2" + bytes(range(12))]}


@pytest.mark.parametrize("later", [False, True], ids=["same", "later"])
@pytest.mark.parametrize("name", FIELDS)
def test_damaged_bodies_are_rows_or_failures_as_for_the_client(name: str, later: bool) -> None:
    written = parsed(record(*FIELDS[name]))
    wanted = parsed(record(*(LATER if later else FIELDS)[name]))
    seeds = RAW.get(name) or [body_of(written, value) for value in SEEDS[name]]
    assert check(written, wanted, seeds) == len(seeds) or later

    good = 0
    blocks = max(1, BODIES // (2 * len(FIELDS)) // BLOCK)
    for block in range(blocks):
        good += check(written, wanted, [*inputs(f"avro {name}", block, seeds, ()), *seeds])
    assert (
        len(seeds) * blocks < good + later * len(seeds) * blocks < (BLOCK + len(seeds)) * blocks * 2
    )
