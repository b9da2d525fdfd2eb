"""Records of JsonConverter become columns of their schemas; what does not fit is that record's error."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from tests.unit.decode.connect_strategies import documents, schemas_with_payloads

from penstock.decode.kernels.connect.aligned import Aligned
from penstock.decode.kernels.connect.envelopes import EnvelopePlan, EnvelopeReader, Origins
from penstock.decode.kernels.connect.record_kernel import (
    Payloads,
    Primitives,
    RecordKernel,
    RecordPlan,
    bad_column,
)
from penstock.encode.connect_json import connect_json_encode
from penstock.errors import ConfigError, SchemaChangedError
from penstock.formats.connect import FLOAT32, FLOAT64, INT32, INT64, STRING, Schema, SchemaBuilder
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.connect.json_schemas import from_document, to_document

DATA = "org.apache.kafka.connect.data."
MONEY = {"type": "bytes", "name": f"{DATA}Decimal", "parameters": {"scale": "2"}}
PAIRS = {"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}}
ORDER = SchemaBuilder.struct("Order").field("id", INT64).field("note", STRING.or_null()).build()


def origins(count: int, first: int = 0) -> Origins:
    return Origins(
        pa.array(["t"] * count),
        pa.array([0] * count, pa.int32()),
        pa.array(range(first, first + count)),
    )


def envelope(schema: Schema | dict[str, Any] | None, payload: Any, **how: Any) -> bytes:
    document = to_document(schema) if isinstance(schema, Schema) else schema
    how = {"separators": (",", ":")} | how
    return json.dumps({"schema": document, "payload": payload}, **how).encode()


def read(
    wanted: Schema | None, records: list[bytes | None], first: int = 0, **plan: Any
) -> Aligned:
    plan = {"known_ends": {("t", 0): 1000}} | plan
    reader = EnvelopeReader(EnvelopePlan(wanted, **plan))
    return reader(pa.array(records, pa.binary()), origins(len(records), first))


def one(document: dict[str, Any], payload: Any, **plan: Any) -> Any:
    """The value of one payload; the message where it is bad."""
    made = read(from_document(document), [envelope(document, payload)], **plan)
    return made.failures[0].message if made.failures else made.values[0].as_py()


def test_records_of_one_schema_are_a_column() -> None:
    made = read(ORDER, [envelope(ORDER, {"id": 1, "note": "é"}), None, envelope(ORDER, {"id": 2})])
    assert made.failures == []
    assert made.values.to_pylist() == [{"id": 1, "note": "é"}, None, {"id": 2, "note": None}]


@pytest.mark.parametrize("how", [{"indent": 2}, {"separators": (", ", ": ")}, {"sort_keys": True}])
def test_other_forms_of_the_same_json_are_read_too(how: dict[str, Any]) -> None:
    records = [envelope(ORDER, {"id": 7}, **how), envelope(ORDER, {"id": 8})]
    assert [each["id"] for each in read(ORDER, records).values.to_pylist()] == [7, 8]


def test_bad_records_do_not_spoil_others_wherever_they_are() -> None:
    bad = [
        b"",
        b"{",
        b"[]",
        b'{"schema":null}',
        b'{"id": 1}',
        b"\xff",
        envelope(ORDER, {"id": 1})[:-1] + b',"more":1}',
        envelope({"type": "int7"}, 1),
        envelope(None, 1),
        envelope(ORDER, None),
        envelope(ORDER, {"id": "1"}),
        envelope(ORDER, {"id": 2**63}),
        envelope(STRING, "x"),
    ]
    good = envelope(ORDER, {"id": 5})
    records = [item for each in bad for item in (each, good)]
    made = read(ORDER, records)
    assert [each.index for each in sorted(made.failures, key=lambda f: f.index)] == [
        *range(0, len(records), 2)
    ]
    assert made.values.to_pylist() == [None, {"id": 5, "note": None}] * len(bad)


def test_a_null_without_a_schema_is_null() -> None:
    assert read(ORDER, [envelope(None, None)]).values.to_pylist() == [None]


@pytest.mark.parametrize(
    ("document", "payload", "value"),
    [
        ({"type": "int32", "name": f"{DATA}Date"}, 19782, date(2024, 2, 29)),
        ({"type": "int32", "name": f"{DATA}Time"}, 1, 1),
        ({"type": "int64", "name": f"{DATA}Timestamp"}, -1,
         datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc)),
        (MONEY, "AN8=", Decimal("2.23")),
        (MONEY, 1e2, Decimal("100.00")),
        ({"type": "bytes"}, "/w==", b"\xff"),
        (PAIRS, [[1, "a"]], [(1, "a")]),
        ({"type": "map", "keys": {"type": "string"}, "values": {"type": "int8"}}, {"x": 1}, [("x", 1)]),
        ({"type": "array", "items": {"type": "int32", "optional": True}}, [1, None], [1, None]),
        ({"type": "struct", "fields": []}, {}, {}),
        ({"type": "struct", "fields": [], "optional": True}, None, None),
        ({"type": "int32", "default": 5}, None, 5),
        ({"type": "array", "items": {"type": "int32", "default": 5}}, [None], [5]),
    ],
)  # fmt: skip
def test_values_of_every_type(document: dict[str, Any], payload: Any, value: Any) -> None:
    assert one(document, payload) == value


@pytest.mark.parametrize(
    ("document", "payload", "message"),
    [
        ({"type": "int32", "name": f"{DATA}Date"}, 2**31 - 1, "years are 0001 to 9999"),
        ({"type": "int32", "name": f"{DATA}Time"}, -1, "a time of the day is 0 to"),
        ({"type": "int64", "name": f"{DATA}Timestamp"}, 2**62, "overflow"),
        (MONEY, "f" * 40, "38 digits"),
        (MONEY, 1.234, "at most 2"),
        (MONEY, {}, "a decimal is"),
        ({"type": "bytes"}, "?", "base64"),
        ({"type": "int8"}, 128, "range"),
        ({"type": "boolean"}, 0, "found the number 0, declared boolean"),
        (PAIRS, [[1]], "a pair"),
        (PAIRS, {"1": "a"}, "array"),
        ({"type": "array", "items": {"type": "int32"}}, [None], "an element is null"),
        ({"type": "int32"}, None, "declared int not null"),
        ({"type": "struct", "fields": []}, 1, "number"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_say_why(
    document: dict[str, Any], payload: Any, message: str
) -> None:
    assert message in one(document, payload)


def test_numbers_that_json_lacks_are_texts() -> None:
    schema = SchemaBuilder.struct().field("x", FLOAT64).field("y", FLOAT32.or_null()).build()
    records = [
        envelope(schema, {"x": "NaN"}),
        envelope(schema, {"x": 1, "y": "-Infinity"}),
        envelope(schema, {"x": "nan"}),
    ]
    made = read(schema, records)
    assert str(made.values.to_pylist()) == "[{'x': nan, 'y': None}, {'x': 1.0, 'y': -inf}, None]"
    assert [each.index for each in made.failures] == [2]
    encode = connect_json_encode(schema, ConverterOptions(form="json", schemas=False))
    assert encode(made.values[:2]).to_pylist() == [
        b'{"x":"NaN","y":null}',
        b'{"x":1.0,"y":"-Infinity"}',
    ]


def test_without_replacing_nulls_a_default_is_not_used() -> None:
    assert one({"type": "int32", "default": 5, "optional": True}, None, replace_null=False) is None
    assert "not null" in one({"type": "int32", "default": 5}, None, replace_null=False)


def test_an_older_record_is_read_into_the_column_of_a_newer_schema() -> None:
    old = SchemaBuilder.struct().field("id", INT32).field("gone", STRING).build()
    made = read(ORDER, [envelope(old, {"id": 1, "gone": "x"})])
    assert made.values.to_pylist() == [{"id": 1, "note": None}]


def test_a_double_that_a_float_column_cannot_hold_is_a_failure_and_is_not_rounded() -> None:
    made = read(FLOAT32, [envelope(FLOAT64, each) for each in (1e300, 0.1, 0.5)])
    assert made.values.to_pylist() == [None, None, 0.5]
    assert [each.index for each in made.failures] == [0, 1]
    assert "does not fit float exactly" in made.failures[0].message


def test_a_new_record_with_more_fields_changes_the_column() -> None:
    more = ORDER.with_fields(
        [*ORDER.fields, *SchemaBuilder.struct().field("x", INT32).build().fields]
    )
    record = envelope(more, {"id": 1, "x": 2})
    with pytest.raises(SchemaChangedError, match="record 1000 of t-0: its schema has more"):
        read(ORDER, [record], first=1000)
    with pytest.raises(ConfigError, match="evolve: follow"):
        read(ORDER, [record], first=1000, evolves=False)
    assert read(ORDER, [record], first=999).values.to_pylist() == [{"id": 1, "note": None}]


def test_the_first_record_with_a_schema_changes_a_column_that_has_none() -> None:
    assert read(None, [None, envelope(None, None)]).values.to_pylist() == [None, None]
    with pytest.raises(SchemaChangedError, match="the first record with a schema"):
        read(None, [envelope(ORDER, {"id": 1})])


def test_many_schemas_in_one_batch_are_read_in_order() -> None:
    schemas = [{**to_document(ORDER), "version": number} for number in range(100)]
    made = read(ORDER, [envelope(each, {"id": number}) for number, each in enumerate(schemas)])
    assert [each["id"] for each in made.values.to_pylist()] == [*range(100)]


@given(schemas_with_payloads(documents()))
def test_what_is_read_is_written_again(drawn: tuple[dict[str, Any], list[Any]]) -> None:
    document, payloads = drawn
    schema = from_document(document)
    given_ = [envelope(document, each, ensure_ascii=False) for each in payloads]
    made = read(schema, given_)
    assert list(made.failures) == []
    encode = connect_json_encode(schema, ConverterOptions(form="json"))
    assert read(schema, encode(made.values).to_pylist()).values.equals(made.values)


def test_keys_and_values_of_a_batch() -> None:
    plan = RecordPlan({"key": Primitives("int"), "value": Payloads(ORDER.or_null(), True)}, {})
    batch = pa.record_batch(
        {
            "topic": ["t"] * 4,
            "partition": pa.array([0] * 4, pa.int32()),
            "offset": [0, 1, 2, 3],
            "key": [b"\0\0\0\1", b"x", None, b"\0\0\0\2"],
            "value": [b'{"id":1}', b"{}", None, b"[]"],
        }
    )
    made = RecordKernel(plan)(batch)
    assert made.rows.to_pylist() == [
        {"key": 1, "value": {"id": 1, "note": None}},
        {"key": None, "value": None},
    ]
    assert [(each.index, each.message.partition(":")[0]) for each in made.failures] == [
        (1, "key"),
        (3, "value"),
    ]
    assert made.origins.to_pylist() == [0, 2]


def test_records_that_spark_found_to_be_bad_are_failures() -> None:
    plan = RecordPlan({"key": Primitives("boolean")}, {"value": "value: bad"})
    batch = pa.record_batch(
        {
            "topic": ["t"] * 3,
            "partition": pa.array([0] * 3, pa.int32()),
            "offset": [0, 1, 2],
            "key": [b"\1", b"\0", b"\2"],
            "value": [b"{", b"1", b"1"],
            bad_column("value"): [True, None, False],
        }
    )
    made = RecordKernel(plan)(batch)
    assert made.rows.to_pylist() == [{"key": False}]
    assert [each.message for each in made.failures] == [
        "value: bad",
        "key: a boolean is one byte, 0 or 1",
    ]


@pytest.mark.parametrize(
    ("form", "data", "value"),
    [
        ("short", b"\xff\xff", -1),
        ("int", b"\0\0\0\7", 7),
        ("long", b"\0" * 7 + b"\7", 7),
        ("float", b"\x3f\x80\0\0", 1.0),
        ("double", b"\x3f\xf0" + b"\0" * 6, 1.0),
        ("boolean", b"\1", True),
    ],
)
def test_primitive_values(form: str, data: bytes, value: Any) -> None:
    made = Primitives(form)()(pa.array([None, data, b"abc"], pa.binary()), origins(3))
    assert made.values.to_pylist() == [None, value, None]
    assert [each.index for each in made.failures] == [2]


def test_a_schema_with_names_that_spark_takes_for_one_is_refused() -> None:
    twins = SchemaBuilder.struct().field("a", INT32).field("A", INT32).build()
    with pytest.raises(ConfigError, match="have one name for Spark"):
        arrow_type(twins)
    assert "have one name for Spark" in read(ORDER, [envelope(twins, {})]).failures[0].message


def test_a_deep_schema_is_a_bad_record() -> None:
    document: dict[str, Any] = {"type": "int32"}
    for _ in range(200):
        document = {"type": "array", "items": document}
    assert "nest" in read(ORDER, [envelope(document, [])]).failures[0].message


def test_a_batch_without_records_is_empty() -> None:
    assert len(read(ORDER, []).values) == 0
    assert np.array_equal(read(ORDER, [None]).values.to_pylist(), [None])
