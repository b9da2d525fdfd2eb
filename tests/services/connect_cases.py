"""Records and configurations of transforms, for a comparison with those of Apache Kafka."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field
from typing import Any

from tests.services.connect_payloads import decimal_payload

from penstock.formats.connect import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    SchemaBuilder,
    date,
    decimal,
    time,
    timestamp,
)

PACKAGE = "org.apache.kafka.connect.transforms."
NOON = 1_700_000_000_123


@dataclass
class Sample:
    """Records of one shape; without a schema where it is None."""

    key: Schema | None
    value: Schema | None
    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, key: Any, value: Any, **more: Any) -> Sample:
        number = len(self.records)
        plain = {
            "topic": "orders", "partition": number % 3, "offset": 100 + number,
            "timestamp": NOON + number * 7_777_777_777, "headers": [["trace", "x"], ["n", "1"]],
        }  # fmt: skip
        self.records.append({**plain, **more, "key": key, "value": value})
        return self


def transform(kind: str, **options: str) -> dict[str, str]:
    """Return the configuration of one transform; `_` in an option stands for a dot."""
    return chain((kind, options))


def chain(
    *transforms: tuple[str, dict[str, str]], **predicates: tuple[str, dict[str, str]]
) -> dict[str, str]:
    config = {"transforms": ",".join(f"t{n}" for n in range(len(transforms)))}
    for n, (kind, options) in enumerate(transforms):
        config |= _keys(f"transforms.t{n}.", f"{PACKAGE}{kind}", options)
    if predicates:
        config["predicates"] = ",".join(predicates)
        for name, (kind, options) in predicates.items():
            config |= _keys(f"predicates.{name}.", f"{PACKAGE}predicates.{kind}", options)
    return config


def _keys(prefix: str, kind: str, options: dict[str, str]) -> dict[str, str]:
    return {f"{prefix}type": kind} | {prefix + k.replace("_", "."): v for k, v in options.items()}


INNER = (
    SchemaBuilder.struct("Inner").field("x", INT32).field("y.z", STRING.or_null())
    .field("deep", SchemaBuilder.struct().field("z", INT64.or_null()).optional().build())
    .optional().build()
)  # fmt: skip
ORDER = (
    SchemaBuilder.struct("Order").version(3)
    .field("id", INT64)
    .field("i8", INT8.or_null()).field("i16", INT16.or_null()).field("i32", INT32.or_null())
    .field("f32", FLOAT32.or_null()).field("f64", FLOAT64.or_null())
    .field("ok", BOOLEAN.or_null()).field("text", STRING.or_null()).field("raw", BYTES.or_null())
    .field("day", date().or_null()).field("clock", time().or_null()).field("at", timestamp().or_null())
    .field("price", decimal(2).or_null())
    .field("state", SchemaBuilder("string", default="new", optional=True).build())
    .field("level", SchemaBuilder("int32", default=7, optional=True).build())
    .field("tags", SchemaBuilder.array(STRING).optional().build())
    .field("counts", SchemaBuilder.map(STRING, INT64).optional().build())
    .build()
)  # fmt: skip
KEY = SchemaBuilder.struct("Key").field("id", INT64).field("part", STRING.or_null()).build()


def order(**changes: Any) -> dict[str, Any]:
    full = {
        "id": 5, "i8": -3, "i16": 300, "i32": 70_000, "f32": 1.5, "f64": -2.75, "ok": True,
        "text": "12", "raw": base64.b64encode(b"\x00\xffabc").decode(), "day": 19_000,
        "clock": 3_723_004, "at": NOON, "price": decimal_payload("12.34", 2), "state": "paid",
        "level": 1, "tags": ["a", 'b"c'], "counts": {"k": 2},
    }  # fmt: skip
    return full | changes


def orders() -> Sample:
    nulls = dict.fromkeys(order(), None) | {"id": 6}
    large = order(
        id=2**62 + 1, i8=127, i16=-32768, i32=-(2**31), f32=3.0e38, f64=1e300, ok=False, text="007",
        raw="", day=-1, clock=0, at=-1, price=decimal_payload("-99999999999999999999.99", 2), tags=[],
        counts={},
    )  # fmt: skip
    small = order(
        f64=0.1, f32=0.1, text="-1", day=0, at=0, price=decimal_payload("0.05", 2), clock=86_399_999
    )
    return (
        Sample(KEY, ORDER)
        .add({"id": 1, "part": "a"}, order())
        .add({"id": 2, "part": None}, nulls)
        .add({"id": 3, "part": "ü"}, large)
        .add({"id": 4, "part": ""}, small)
        .add(None, order(id=9))
        .add({"id": 7, "part": "t"}, None)
    )


def nested() -> Sample:
    outer = (
        SchemaBuilder.struct("Outer").field("a", INT64).field("in", INNER)
        .field("list", SchemaBuilder.array(INT32).optional().build()).build()
    )  # fmt: skip
    return (
        Sample(STRING, outer)
        .add("k", {"a": 1, "in": {"x": 2, "y.z": "s", "deep": {"z": 3}}, "list": [1, 2]})
        .add("k2", {"a": 1, "in": {"x": 2, "y.z": None, "deep": None}, "list": None})
        .add(None, {"a": 1, "in": None, "list": []})
        .add("t", None)
    )


def maps() -> Sample:
    return (
        Sample(None, None)
        .add({"id": 1}, {"a": 1, "b": "x", "c": 1.5, "d": True, "e": None, "l": [1, "z"],
                         "o": {"p": {"q": 2}, "r": 3}})
        .add("text", {"a": -5, "b": "17", "c": 2.0, "at": NOON, "day": "2023-11-14", "o": {}})
        .add(None, {"é": "ü", "a.b": 1, "`": 2, "l": [], "c": 1e10, "d": False, "b": "TRUE"})
        .add(17, {})
        .add({"id": None}, None)
    )  # fmt: skip


def scalars(schema: Schema, *values: Any) -> Sample:
    sample = Sample(schema, schema)
    for value in values:
        sample.add(value, value)
    return sample.add(None, None)


def random_sample(source: random.Random) -> Sample:
    """Return records of a random struct."""
    schema = _random_struct(source, 0)
    sample = Sample(INT64, schema)
    for number in range(6):
        sample.add(number, None if source.random() < 0.1 else _random_value(source, schema))
    return sample


_SCALARS = (INT8, INT16, INT32, INT64, FLOAT64, BOOLEAN, STRING, BYTES, date(), time(), timestamp())
NAMES = ("id", "a b", "x.y", "`q`", "naïve", "UPPER", "f-1", "数", "$d", "list")


def _random_struct(source: random.Random, depth: int) -> Schema:
    names = source.sample(NAMES, source.randint(1, 6))
    built = SchemaBuilder.struct(source.choice([None, "R"]))
    for name in names:
        built = built.field(name, _random_schema(source, depth))
    made = built.build()
    return made.or_null() if depth and source.random() < 0.5 else made


def _random_schema(source: random.Random, depth: int) -> Schema:
    if depth < 2 and source.random() < 0.3:
        return _random_struct(source, depth + 1)
    made = source.choice(_SCALARS)
    return made.or_null() if source.random() < 0.6 else made


def _random_value(source: random.Random, schema: Schema) -> Any:
    if schema.optional and source.random() < 0.25:
        return None
    if schema.fields:
        return {e.name: _random_value(source, e.schema) for e in schema.fields}
    bits = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}.get(schema.type.value)
    if schema.name:
        return source.randint(0, 86_399_999 if schema.name.endswith("Time") else 40_000)
    if bits:
        return source.choice(
            [0, 1, -1, 2**bits - 1, -(2**bits), source.randint(-(2**bits), 2**bits - 1)]
        )
    return {
        "double": lambda: source.choice([0.0, -0.5, 1e18, 3.7, 1e-9]),
        "boolean": lambda: source.random() < 0.5,
        "string": lambda: source.choice(["", "0", "-12", "3.5", "true", "a'b", "ü€😀", " 1"]),
        "bytes": lambda: base64.b64encode(source.randbytes(source.randint(0, 4))).decode(),
    }[schema.type.value]()


def random_chain(source: random.Random, schema: Schema) -> dict[str, str]:
    """Return one to three transforms that name fields of a struct, or fields that it does not have."""
    names = [e.name for e in schema.fields] + ["missing"]
    pick = lambda: source.choice(names)  # noqa: E731
    types = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
    targets = ("unix", "Date", "Time", "Timestamp")
    choices = (
        lambda: ("Cast$Value", {"spec": f"{pick()}:{source.choice(types)}"}),
        lambda: ("ReplaceField$Value", {"exclude": pick()}),
        lambda: ("ReplaceField$Value", {"renames": f"{pick()}:new"}),
        lambda: ("MaskField$Value", {"fields": pick()}),
        lambda: ("MaskField$Value", {"fields": pick(), "replacement": source.choice(["9", "x"])}),
        lambda: ("InsertField$Value", {"static_field": pick(), "static_value": "v"}),
        lambda: ("InsertField$Value", {"timestamp_field": "ts!", "partition_field": "p"}),
        lambda: ("Flatten$Value", {"delimiter": source.choice([".", "_", ""])}),
        lambda: ("HoistField$Value", {"field": "all"}),
        lambda: ("ValueToKey", {"fields": pick()}),
        lambda: ("HeaderFrom$Value", {"fields": pick(), "headers": "h", "operation": "move"}),
        lambda: (
            "TimestampConverter$Value",
            {"field": pick(), "target_type": source.choice(targets)},
        ),
    )
    return chain(*(source.choice(choices)() for _ in range(source.randint(1, 3))))
