"""Protobuf schemas that change: fields are matched by number, incompatible types are refused early."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.fuzz.protobuf_messages import REPEATED, add_field, class_of, new_file

from penstock.decode.kernels.protobuf import protobuf_scan
from penstock.decode.kernels.protobuf.protobuf_kernel import ProtobufBodies
from penstock.errors import ConfigError


@pytest.fixture(autouse=True)
def _in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_scan, "FEW", 0)


def message(fields: dict[str, tuple[int, str]], syntax: str = "proto3", **options: Any) -> Any:
    """Return the class of a message with fields by name, each with its number and type."""
    file = new_file(syntax)
    proto = file.message_type.add(name="M")
    for name, (number, type_) in fields.items():
        add_field(proto, type_, number, name=name, **options)
    return class_of(file)


def read(written: Any, wanted: Any, **values: Any) -> Any:
    decode = ProtobufBodies(written.DESCRIPTOR, wanted.DESCRIPTOR)
    batch, failures = decode(pa.array([written(**values).SerializeToString()]))
    assert failures == []
    return batch.to_pylist()[0]


def test_added_fields_have_defaults_removed_ones_are_skipped_renamed_ones_keep_their_values() -> (
    None
):
    written = message({"id": (1, "int64"), "old": (2, "string"), "gone": (3, "double")})
    wanted = message({"id": (1, "int64"), "new": (2, "string"), "added": (4, "int32")})
    row = read(written, wanted, id=5, old="x", gone=1.5)
    assert row == {"id": 5, "new": "x", "added": 0}


@pytest.mark.parametrize(
    ("before", "after", "value", "expected"),
    [
        ("int32", "int64", -(2**31), -(2**31)),
        ("uint32", "int64", 2**32 - 1, 2**32 - 1),
        ("sint32", "sint64", -7, -7),
        ("bool", "int32", True, 1),
        (".t.Side", "int32", -5, -5),
        ("int32", ".t.Side", 2, "SELL"),
        ("string", "bytes", "é", "é".encode()),
        ("bytes", "string", b"a", "a"),
    ],
)
def test_a_type_may_become_one_with_the_same_values(
    before: str, after: str, value: Any, expected: Any
) -> None:
    written, wanted = message({"x": (1, before)}), message({"x": (1, after)})
    assert read(written, wanted, x=value) == {"x": expected}


def test_a_single_value_may_become_a_list() -> None:
    written = message({"x": (1, "int32")})
    wanted = message({"x": (1, "int32")}, label=REPEATED)
    assert read(written, wanted, x=5) == {"x": [5]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *(("int64", "int32"), ("int32", "sint32"), ("fixed32", "int32"), ("float", "double")),
        *(("uint64", "int64"), ("string", "int32"), ("fixed32", "sfixed32"), ("int32", "bool")),
        ("bytes", ".google.protobuf.Empty"),
    ],
)
def test_a_type_with_other_bytes_or_values_is_refused(before: str, after: str) -> None:
    written, wanted = message({"x": (1, before)}), message({"x": (1, after)})
    with pytest.raises(
        ConfigError, match=r"t\.M, x: field 1 was written as \w+ and cannot be read"
    ):
        ProtobufBodies(written.DESCRIPTOR, wanted.DESCRIPTOR)


def test_a_list_cannot_become_a_single_value() -> None:
    written = message({"x": (1, "int32")}, label=REPEATED)
    wanted = message({"x": (1, "int32")})
    with pytest.raises(ConfigError, match="written as repeated int32 and cannot be read as int32"):
        ProtobufBodies(written.DESCRIPTOR, wanted.DESCRIPTOR)


def test_a_required_field_that_was_not_written_is_refused() -> None:
    written = message({"x": (1, "int32")}, "proto2")
    wanted = message({"y": (2, "int32")}, "proto2", label=2)
    with pytest.raises(ConfigError, match="y: field 2 is required, and was not written"):
        ProtobufBodies(written.DESCRIPTOR, wanted.DESCRIPTOR)


def test_changes_inside_messages_are_checked_as_well() -> None:
    def nested(type_: str) -> Any:
        file = new_file()
        add_field(file.message_type.add(name="Inner"), type_, 1)
        add_field(file.message_type.add(name="M"), ".t.Inner", 1)
        return class_of(file)

    assert read(nested("int32"), nested("int64"), f1={"f1": 5}) == {"f1": {"f1": 5}}
    with pytest.raises(ConfigError, match=r"t\.M, f1\.f1: field 1 was written as int64"):
        ProtobufBodies(nested("int64").DESCRIPTOR, nested("int32").DESCRIPTOR)


def test_each_of_twenty_versions_is_read_as_each_other_one() -> None:
    versions = [
        message({f"v{version}_{number}": (number, "int64") for number in range(1, version + 1)})
        for version in range(1, 21)
    ]
    for written in versions:
        names = list(written.DESCRIPTOR.fields_by_name)
        body = pa.array([written(**dict.fromkeys(names, 7)).SerializeToString()])
        for wanted in versions:
            rows, failures = ProtobufBodies(written.DESCRIPTOR, wanted.DESCRIPTOR)(body)
            columns = wanted.DESCRIPTOR.fields_by_name
            expected = [7 if index < len(names) else 0 for index in range(len(columns))]
            assert (list(rows.to_pylist()[0].values()), failures) == (expected, [])
