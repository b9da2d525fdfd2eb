"""Protobuf message types and messages made at random."""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from google.protobuf.struct_pb2 import DESCRIPTOR as STRUCTS

from penstock.formats.protobuf.protobuf_schema import Classes
from penstock.formats.registry import Schema
from penstock.formats.registry.registry_model import PROTOBUF

SCALARS = [
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
]
KEYS = [name for name in SCALARS if name not in ("double", "float", "bytes")]
GOOGLES = {
    "Timestamp": "timestamp",
    "Duration": "duration",
    "FieldMask": "field_mask",
    "Empty": "empty",
    "Any": "any",
    "Struct": "struct",
    "Value": "struct",
    "ListValue": "struct",
    **{
        f"{name}Value": "wrappers"
        for name in (
            "Bool",
            "Int32",
            "UInt32",
            "Int64",
            "UInt64",
            "Float",
            "Double",
            "String",
            "Bytes",
        )
    },
}
OPTIONAL, REPEATED = Proto.LABEL_OPTIONAL, Proto.LABEL_REPEATED
_WIDER = {
    Proto.TYPE_INT32: Proto.TYPE_INT64,
    Proto.TYPE_UINT32: Proto.TYPE_UINT64,
    Proto.TYPE_SINT32: Proto.TYPE_SINT64,
}
TEXTS = ["", "a", "é", "name", "😀 text", "x" * 130]


def new_file(syntax: str = "proto3") -> FileDescriptorProto:
    """Return an empty file that imports Google's types, with an enum."""
    imports = sorted({f"google/protobuf/{name}.proto" for name in GOOGLES.values()})
    file = FileDescriptorProto(name="t.proto", package="t", syntax=syntax, dependency=imports)
    enum = file.enum_type.add(name="Side")
    for number, name in ((0, "NONE"), (1, "BUY"), (2, "SELL"), (-5, "BELOW")):
        enum.value.add(name=name, number=number)
    return file


def add_field(message: DescriptorProto, type_: str, number: int, **options: Any) -> Proto:
    """Add a field; the type is the name of a scalar, or the full name of a message or an enum."""
    field = message.field.add(number=number, **{"name": f"f{number}", "label": OPTIONAL, **options})
    if type_ in SCALARS:
        field.type = getattr(Proto, f"TYPE_{type_.upper()}")
        return field
    field.type_name = type_
    field.type = Proto.TYPE_ENUM if type_ == ".t.Side" else Proto.TYPE_MESSAGE
    return field


def add_map(message: DescriptorProto, key: str, value: str, number: int) -> None:
    """Add a map field."""
    entry = message.nested_type.add(name=f"F{number}Entry")
    entry.options.map_entry = True
    add_field(entry, key, 1, name="key")
    add_field(entry, value, 2, name="value")
    add_field(message, f".t.{message.name}.{entry.name}", number, label=REPEATED)


def class_of(file: FileDescriptorProto, name: str = "M") -> Any:
    """Return the class of a message of a file, made as from a registry."""
    text = b64encode(file.SerializeToString()).decode()
    index = [message.name for message in file.message_type].index(name)
    return Classes(None, Schema(text, PROTOBUF)).at([index])  # type: ignore[arg-type]


def random_file(random: Random) -> FileDescriptorProto:
    """Return a file with messages M, Inner and Leaf; M contains Inner, which contains Leaf."""
    file = new_file(random.choice(["proto2", "proto3", "proto3"]))
    inner: list[str] = []
    for name in ("Leaf", "Inner", "M"):
        message = file.message_type.add(name=name)
        _add_fields(random, message, inner, file.syntax)
        inner.append(f".t.{name}")
    return file


def later_version(random: Random, file: FileDescriptorProto) -> FileDescriptorProto:
    """Return the file with some fields added, removed, renamed, or of a wider type."""
    later = FileDescriptorProto.FromString(file.SerializeToString())
    for message in later.message_type:
        add_field(message, random.choice(SCALARS), 200)
        for field in list(message.field):
            if random.random() < 0.3:
                field.name = f"renamed_{field.number}"
            if random.random() < 0.2 and field.type in _WIDER:
                field.type = _WIDER[field.type]
            if random.random() < 0.2 and not field.HasField("oneof_index"):
                message.field.remove(field)
        if not message.field:
            add_field(message, "int32", 201)
    return later


def _add_fields(random: Random, message: DescriptorProto, inner: list[str], syntax: str) -> None:
    # Protobuf drops numbers that an enum of proto2 does not have, and the kernel does not.
    enums = [".t.Side"] * 2 if syntax == "proto3" else []
    types = [*SCALARS, *SCALARS, *enums, *inner, *inner, *inner]
    types += [f".google.protobuf.{name}" for name in random.sample(sorted(GOOGLES), 4)]
    numbers = random.sample([*range(1, 15), 16, 2047, 2048, 2**20, 2**29 - 1], random.randint(1, 7))
    for number in numbers:
        kind, type_ = random.random(), random.choice(types)
        if kind < 0.15:
            add_map(message, random.choice(KEYS), type_, number)
        elif kind < 0.4:
            _maybe_packed(random, add_field(message, type_, number, label=REPEATED))
        elif kind < 0.5 and syntax == "proto3":
            _add_optional(message, add_field(message, type_, number))
        else:
            add_field(message, type_, number)
    _add_oneof(random, message, types)


def _maybe_packed(random: Random, field: Proto) -> None:
    if field.type not in (Proto.TYPE_STRING, Proto.TYPE_BYTES, Proto.TYPE_MESSAGE):
        field.options.packed = random.random() < 0.5


def _add_optional(message: DescriptorProto, field: Proto) -> None:
    field.oneof_index = len(message.oneof_decl)
    field.proto3_optional = True
    message.oneof_decl.add(name=f"_{field.name}")


def _add_oneof(random: Random, message: DescriptorProto, types: list[str]) -> None:
    # Declared oneofs come before the ones of optional fields.
    if random.random() < 0.5 or message.oneof_decl:
        return
    message.oneof_decl.add(name="choice")
    for number in (100, 101):
        add_field(message, random.choice(types), number, oneof_index=0)


def fill(random: Random, message: Any, depth: int = 0) -> None:
    """Set fields of a message at random."""
    for field in message.DESCRIPTOR.fields:
        if random.random() < 0.3:
            continue
        if field.message_type and field.message_type.GetOptions().map_entry:
            _fill_map(random, getattr(message, field.name), field.message_type)
        elif field.is_repeated:
            _fill_list(random, getattr(message, field.name), field, depth)
        elif field.message_type:
            getattr(message, field.name).SetInParent()
            _fill_message(random, getattr(message, field.name), depth)
        else:
            setattr(message, field.name, scalar(random, field))


def _fill_map(random: Random, container: Any, entry: Any) -> None:
    key, value = entry.fields
    for _ in range(random.randint(0, 3)):
        if value.message_type:
            _fill_message(random, container[scalar(random, key)], 1)
        else:
            container[scalar(random, key)] = scalar(random, value)


def _fill_list(random: Random, container: Any, field: Any, depth: int) -> None:
    for _ in range(random.choice([0, 1, 2, 20])):
        if field.message_type:
            _fill_message(random, container.add(), depth)
        else:
            container.append(scalar(random, field))


def _fill_message(random: Random, message: Any, depth: int) -> None:
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds = random.choice([0, 1_700_000_000, -1, -62_135_596_800, 253_402_300_799])
        message.nanos = random.choice([0, 1, 999_999_999, 123_456_789])
    elif name == "google.protobuf.Duration":
        sign = random.choice([-1, 1])
        message.seconds = sign * random.choice([0, 5, 315_576_000_000])
        message.nanos = sign * random.choice([0, 1, 999_999_999])
    elif message.DESCRIPTOR.file.name == STRUCTS.name:
        _fill_json(random, message, 0)
    else:
        fill(random, message, depth + 1)


def _fill_json(random: Random, message: Any, depth: int) -> None:
    plain = [None, True, "é", 1.0, -2.5, 1e300, float(2**53)]
    nested = [] if depth > 1 else [{"b": 1, "a": [None, {}]}, [1, [2]]]
    value = {"x": random.choice([*plain, *nested]), "a": random.choice(plain)}
    text = {
        "Struct": value,
        "ListValue": list(value.values()),
        "Value": random.choice([*plain, value]),
    }
    json_format.ParseDict(text[message.DESCRIPTOR.name], message)


def scalar(random: Random, field: Any) -> Any:
    """Return a value of a field that is not a message."""
    if field.enum_type:
        return random.choice([0, 1, 2, -5, *([] if field.enum_type.is_closed else [77])])
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        text = random.choice(TEXTS)
        return (
            text if field.type == field.TYPE_STRING else random.choice([b"\xff\0", text.encode()])
        )
    if kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return random.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), -(2.0**-20)])
    if kind == field.CPPTYPE_BOOL:
        return random.random() < 0.5
    signed = kind in (field.CPPTYPE_INT32, field.CPPTYPE_INT64)
    bits = 32 if kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
    large = random.getrandbits(random.randint(1, bits))
    value = random.choice([0, 1, 127, 128, 300, 2 ** (bits - 1) - 1, large])
    if not signed:
        return value
    return random.choice([-1, 1]) * min(value, 2 ** (bits - 1) - 1)
