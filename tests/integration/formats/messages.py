"""Protobuf classes for the tests, made from a description: no compiler is needed."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

INT64, DOUBLE, STRING, MESSAGE = (
    FieldDescriptorProto.TYPE_INT64,
    FieldDescriptorProto.TYPE_DOUBLE,
    FieldDescriptorProto.TYPE_STRING,
    FieldDescriptorProto.TYPE_MESSAGE,
)


def file_of(name: str, messages: dict[str, dict[str, Any]], imports: tuple[str, ...] = ()) -> Any:
    """Describe a file: messages by name, their fields by name, each a type or the name of a message."""
    file = FileDescriptorProto(name=name, package="shop", syntax="proto3", dependency=imports)
    for message, fields in messages.items():
        added = file.message_type.add(name=message)
        for number, (field, kind) in enumerate(fields.items(), start=1):
            made = added.field.add(name=field, number=number, label=1)
            if isinstance(kind, str):
                made.type, made.type_name = MESSAGE, kind
            else:
                made.type = kind
    return file


def class_of(full_name: str, *files: Any) -> Any:
    """Make the class of a message."""
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(full_name))
