"""A registry that has one schema, for any id; and Protobuf files without a compiler."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from penstock.formats.registry import Registry, Schema

_TYPES = {"double": 1, "int64": 3, "bool": 8, "string": 9, "bytes": 12}
_MESSAGE = 11


class OneSchema(Registry):
    """Gives one schema, whatever the id."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__("http://memory")
        self._only = Schema(text, kind)

    def find(self, schema_id: int, form: str = "") -> Schema | None:
        return self._only if schema_id == 1 else None


def message_file(messages: Mapping[str, Mapping[str, str]]) -> str:
    """Describe a file: fields by name, each a type or a message's name; `*` before it: repeated."""
    file = FileDescriptorProto(name="fuzz.proto", package="fuzz", syntax="proto3")
    for message, fields in messages.items():
        added = file.message_type.add(name=message)
        for number, (name, given) in enumerate(fields.items(), start=1):
            kind = given.removeprefix("*")
            field = added.field.add(name=name, number=number, label=3 if given[0] == "*" else 1)
            field.type = _TYPES.get(kind, _MESSAGE)
            if kind not in _TYPES:
                field.type_name = f".fuzz.{kind}"
    return b64encode(file.SerializeToString()).decode()
