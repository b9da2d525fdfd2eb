"""The Protobuf kernel: rows of the declared types, a failure for each bad body, schemas that change."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError
from tests.fuzz.protobuf_messages import REPEATED, SCALARS, add_field, add_map, class_of, new_file

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.protobuf import protobuf_scan
from penstock.decode.kernels.protobuf.protobuf_kernel import ProtobufBodies, protobuf_table_schema
from penstock.errors import ConfigError

GOOGLE = ".google.protobuf."
IN_BULK, AS_MEASURED, ONE_BY_ONE = 0, protobuf_scan.FEW, 2**30


@pytest.fixture(params=[IN_BULK, AS_MEASURED, ONE_BY_ONE], autouse=True)
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run every test both in bulk and by protobuf's parser."""
    monkeypatch.setattr(protobuf_scan, "FEW", request.param)
    return request.param


def message(*types: str, syntax: str = "proto3", **options: Any) -> Any:
    """Return the class of a message with the fields f1, f2, ..."""
    file = new_file(syntax)
    proto = file.message_type.add(name="M")
    for number, type_ in enumerate(types, 1):
        add_field(proto, type_, number, **options)
    return class_of(file)


def decode(message_class: Any, *bodies: Any, written: Any = None) -> tuple[list[Any], list[Any]]:
    wanted = message_class.DESCRIPTOR
    raw = [each if isinstance(each, bytes) else each.SerializeToString() for each in bodies]
    decoder = ProtobufBodies((written or message_class).DESCRIPTOR, wanted)
    batch, failures = decoder(pa.array(raw, pa.binary()))
    batch.validate(full=True)
    assert batch.schema == arrow_schema(protobuf_table_schema(wanted))
    return batch.to_pylist(), [(each.index, each.error_type, each.message) for each in failures]


def ddl(message_class: Any) -> str:
    return protobuf_table_schema(message_class.DESCRIPTOR).ddl()


def test_every_scalar_has_its_column_type() -> None:
    assert ddl(message(*SCALARS)) == (
        "f1 double not null, f2 float not null, f3 bigint not null, f4 decimal(20,0) not null, "
        "f5 int not null, f6 decimal(20,0) not null, f7 bigint not null, f8 boolean not null, "
        "f9 string not null, f10 binary not null, f11 bigint not null, f12 int not null, "
        "f13 bigint not null, f14 int not null, f15 bigint not null"
    )


def test_messages_lists_and_maps_have_their_column_types() -> None:
    file = new_file()
    inner = file.message_type.add(name="Inner")
    add_field(inner, "int32", 1)
    proto = file.message_type.add(name="M")
    add_field(proto, ".t.Inner", 1)
    add_field(proto, ".t.Side", 2, label=REPEATED)
    add_map(proto, "string", ".t.Inner", 3)
    add_map(proto, "int32", "string", 4)

    assert ddl(class_of(file)) == (
        "f1 struct<f1:int not null>, f2 array<string> not null, "
        "f3 map<string,struct<f1:int not null>> not null, "
        "f4 array<struct<key:int not null,value:string not null>> not null"
    )


def test_well_known_types_have_their_column_types() -> None:
    names = ("Timestamp", "Duration", "UInt64Value", "Struct", "Any", "FieldMask", "Empty")
    assert ddl(message(*(f"{GOOGLE}{name}" for name in names))) == (
        "f1 timestamp, f2 decimal(21,9), f3 decimal(20,0), f4 string, "
        "f5 struct<type_url:string not null,value:binary not null>, f6 array<string>, "
        "f7 boolean not null"
    )


def test_a_message_that_contains_itself_has_no_columns() -> None:
    file = new_file()
    proto = file.message_type.add(name="M")
    other = file.message_type.add(name="Other")
    add_field(proto, ".t.Other", 1)
    add_field(other, ".t.M", 1, label=REPEATED)
    with pytest.raises(ConfigError, match=r"t\.M, f1\.f1: t\.M contains itself"):
        protobuf_table_schema(class_of(file).DESCRIPTOR)


def chain_of(depth: int, fields: int = 1) -> FileDescriptorProto:
    file = new_file()
    for level in range(depth):
        proto = file.message_type.add(name="M" if level == 0 else f"M{level}")
        for number in range(1, fields + 1):
            add_field(proto, "int32" if level + 1 == depth else f".t.M{level + 1}", number)
    return file


def test_messages_nest_up_to_32_deep() -> None:
    assert "f1 struct<" in ddl(class_of(chain_of(33)))
    with pytest.raises(ConfigError, match="messages nest deeper than 32 levels"):
        ddl(class_of(chain_of(34)))


def test_a_few_messages_cannot_describe_millions_of_columns() -> None:
    with pytest.raises(ConfigError, match="more than 5000 fields in all"):
        ddl(class_of(chain_of(30, fields=2)))


def test_unset_fields_have_defaults_or_are_null() -> None:
    assert decode(message("int32", "string", "bool", ".t.Side"), b"")[0] == [
        {"f1": 0, "f2": "", "f3": False, "f4": "NONE"}
    ]
    assert decode(message("int32", "string", syntax="proto2"), b"")[0] == [{"f1": None, "f2": None}]
    known = message(f"{GOOGLE}Timestamp", f"{GOOGLE}StringValue", f"{GOOGLE}Empty")
    assert decode(known, b"")[0] == [{"f1": None, "f2": None, "f3": False}]


def test_extremes_of_numbers_are_exact() -> None:
    numbers = message("uint64", "int64", "int32", "sint64", "uint32", "fixed64")
    value = numbers(f1=2**64 - 1, f2=-(2**63), f3=-1, f4=-(2**63), f5=2**32 - 1, f6=2**64 - 1)
    assert decode(numbers, value)[0] == [
        {
            "f1": Decimal(2**64 - 1),
            "f2": -(2**63),
            "f3": -1,
            "f4": -(2**63),
            "f5": 2**32 - 1,
            "f6": Decimal(2**64 - 1),
        }
    ]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_an_enum_number_without_a_name_is_its_text(syntax: str) -> None:
    assert decode(message(".t.Side", syntax=syntax), b"\x08\x07", b"\x08\x01")[0] == [
        {"f1": "7"},
        {"f1": "BUY"},
    ]


def test_times_are_truncated_to_microseconds_and_out_of_range_they_fail() -> None:
    times = message(f"{GOOGLE}Timestamp")
    good = times(f1={"seconds": 1, "nanos": 1999})
    rows, failures = decode(times, good, times(f1={"seconds": 253_402_300_800}), good)
    expected = {"f1": datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=timezone.utc)}
    assert rows == [expected, expected]
    reason = "253402300800 seconds and 0 nanoseconds are not a time of the years 1 to 9999"
    assert failures == [(1, "OutOfRange", f"f1: {reason}")]


def test_durations_are_exact_seconds() -> None:
    durations = message(f"{GOOGLE}Duration")
    values = [{"seconds": -315_576_000_000, "nanos": -1}, {"nanos": 5}, {"seconds": 1, "nanos": -1}]
    rows, failures = decode(durations, *(durations(f1=value) for value in values))
    assert [row["f1"] for row in rows] == [
        Decimal("-315576000000.000000001"),
        Decimal("0.000000005"),
    ]
    assert [(index, type_) for index, type_, _ in failures] == [(2, "OutOfRange")]


def test_bad_bodies_fail_with_their_reason_and_the_others_are_rows() -> None:
    texts = message("string", "int32")
    good = texts(f1="a", f2=1)
    rows, failures = decode(texts, good, b"\x0a\x05a", good, b"\x0a\x01\xff", b"\x13", good)
    assert rows == [{"f1": "a", "f2": 1}] * 3
    assert [(index, type_) for index, type_, _ in failures] == [
        (1, "MalformedProtobuf"),
        (3, "MalformedProtobuf"),
        (4, "MalformedProtobuf"),
    ]
    assert failures[0][2].startswith("these 3 bytes are not Protobuf: ")


def test_text_of_proto2_must_be_utf8_as_well() -> None:
    texts = message("string", syntax="proto2")
    rows, failures = decode(texts, b"\x0a\x01\xff", b"\x0a\x01a")
    assert rows == [{"f1": "a"}]
    assert failures == [(0, "NotUtf8", "f1: the text is not UTF-8")]


def test_required_fields_must_be_given() -> None:
    required = message("int32", syntax="proto2", label=2)
    rows, failures = decode(required, b"", required(f1=0))
    assert rows == [{"f1": 0}]
    assert failures == [(0, "MissingField", "required fields are missing: ['f1']")]


def test_a_body_that_would_take_too_much_memory_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAX_DECODED_BYTES", str(2**20))
    file = new_file()
    inner = file.message_type.add(name="Inner")
    for number in range(1, 20):
        add_field(inner, "int64", number)
    add_field(file.message_type.add(name="M"), ".t.Inner", 1, label=REPEATED)
    rows, failures = decode(class_of(file), b"\x0a\x00" * 2000, b"\x0a\x00")
    assert [len(row["f1"]) for row in rows] == [1]
    assert [(index, type_) for index, type_, _ in failures] == [(0, "TooLarge")]


def test_a_body_with_many_more_fields_than_the_others_is_read(few: int) -> None:
    texts = message("string", "int32", label=REPEATED)
    bodies = [texts(f1=["a", "b"], f2=[1]) for _ in range(400)]
    bodies[7] = texts(f1=[str(number) for number in range(2000)], f2=[5])
    rows, failures = decode(texts, *bodies)
    assert (rows[7]["f1"][-1], len(rows), failures) == ("1999", 400, [])
    assert rows[8] == {"f1": ["a", "b"], "f2": [1]}


def test_a_slice_and_an_empty_array_are_decoded() -> None:
    numbers = message("int32")
    decoder = ProtobufBodies(numbers.DESCRIPTOR, numbers.DESCRIPTOR)
    bodies = pa.array([numbers(f1=number).SerializeToString() for number in range(5)])
    assert decoder(bodies.slice(2, 2))[0].to_pylist() == [{"f1": 2}, {"f1": 3}]
    assert decoder(bodies.slice(0, 0))[0].schema == decoder.arrow_schema
    assert decoder(pa.array([], pa.binary()))[0].num_rows == 0


@pytest.mark.parametrize("field", [b"\x0a", b"\xfa\xff\xff\xff\x0f"], ids=["known", "unknown"])
def test_a_size_has_five_bytes_at_most_as_in_protobufs_own_parser(field: bytes) -> None:
    sizes = [b"\x80" * more + b"\x00" for more in range(10)]
    message_class = message("string")
    _, failures = decode(message_class, *(field + size for size in sizes))
    for index, size in enumerate(sizes):
        refused = any(failure[0] == index for failure in failures)
        try:
            message_class.FromString(field + size)
        except DecodeError:
            assert refused, size
        else:
            assert not refused, size
