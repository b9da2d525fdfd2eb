"""Registered Protobuf files: where in them the wanted message is, and files that have none."""

from __future__ import annotations

from base64 import b64encode

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from penstock.decode.protobuf_decode import ProtobufColumns
from penstock.errors import ConfigError
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.registry_model import PROTOBUF

REGISTRY = Registry("http://registry")


def file(*messages: str, package: str = "shop", imported: str = "") -> Schema:
    """Return a file whose messages have one number each."""
    number = FieldDescriptorProto(
        name="n",
        number=1,
        type=FieldDescriptorProto.TYPE_INT32,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )
    described = FileDescriptorProto(
        name="shop.proto",
        package=package,
        syntax="proto3",
        dependency=[imported] if imported else [],
        message_type=[DescriptorProto(name=name, field=[number]) for name in messages],
        enum_type=[
            EnumDescriptorProto(name="E", value=[EnumValueDescriptorProto(name="A", number=0)])
        ],
    )
    return Schema(b64encode(described.SerializeToString()).decode(), PROTOBUF)


def test_a_message_is_read_wherever_its_file_has_it() -> None:
    written = file("Other", "Trade", "More")
    read = ProtobufColumns("shop.Trade").bodies(written, written, REGISTRY)
    for values in ([b"\x02\x02\x08\x05"], [b"\x02\x02\x08\x05", b"\x00\x08\x07", b"\x09"]):
        rows, failures = read(pa.array(values, pa.binary()))
        assert rows.to_pylist() == [{"n": 5}]
        kinds = [failure.error_type for failure in failures]
        assert kinds == ["IncompatibleSchema", "FormatError"][: len(values) - 1]


def test_a_message_may_move_in_its_file_and_to_another_package() -> None:
    wanted = file("Trade")
    moved = ProtobufColumns().bodies(file("Other", "Trade"), wanted, REGISTRY)
    assert moved(pa.array([b"\x02\x02\x08\x05"]))[0].to_pylist() == [{"n": 5}]
    renamed = ProtobufColumns().bodies(file("Trade", package="old"), wanted, REGISTRY)
    assert renamed(pa.array([b"\x00\x08\x05"]))[0].to_pylist() == [{"n": 5}]


@pytest.mark.parametrize(
    ("unusable", "reason"),
    [
        (file(), "has no messages"),
        (file("Other"), "shop.Other was written"),
        (file("Trade", imported="google/type/nothing.proto"), "is not installed"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_of_that_schema(
    unusable: Schema, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        ProtobufColumns().bodies(unusable, file("Trade"), REGISTRY)


def test_the_message_of_a_wrong_place_is_short() -> None:
    read = ProtobufColumns().bodies(file("Trade"), file("Trade"), REGISTRY)
    _, (failure,) = read(pa.array([b"\x90\x4e" + b"\x02" * 5000]))
    assert len(failure.message) < 300
