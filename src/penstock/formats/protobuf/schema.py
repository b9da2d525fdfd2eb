"""Protobuf schemas as the registry keeps them: a file's description in base64, its imports as references.

A class for a message is made from that description; nothing is generated, compiled or looked for by a
name that a schema chose, but for Google's own types.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from penstock.errors import ConfigError, FormatError
from penstock.formats.registry import Reference, Registry, Schema
from penstock.formats.registry.model import PROTOBUF

SERIALIZED = "serialized"

_GOOGLES = re.compile(r"google/(protobuf|type)/([a-z_]+)\.proto")

Resolve = Callable[[str, Schema], int]


def schema_of(file: Any, resolve: Resolve) -> Schema:
    """Give the schema of a file descriptor; `resolve` gives the version of each file that it imports."""
    references = tuple(
        Reference(other.name, other.name, resolve(other.name, schema_of(other, resolve)))
        for other in file.dependencies
        if not is_known(other.name)
    )
    return Schema(b64encode(file.serialized_pb).decode(), PROTOBUF, references)


def is_known(name: str) -> bool:
    """Tell whether every Protobuf has this file.

    >>> is_known("google/protobuf/timestamp.proto"), is_known("shop/trade.proto")
    (True, False)
    """
    return _GOOGLES.fullmatch(name) is not None


def described(schema: Schema) -> FileDescriptorProto | None:
    """Give the description of a registered file, or None where the registry gives its .proto text."""
    try:
        return FileDescriptorProto.FromString(b64decode(schema.text, validate=True))
    except (NotBase64, DecodeError):
        return None


def name_at(file: FileDescriptorProto, indexes: Sequence[int]) -> str:
    """Give the full name of the message at a place in a file."""
    names, level = [file.package] if file.package else [], file.message_type
    for index in indexes:
        if not 0 <= index < len(level):
            raise FormatError(
                f"the bytes name message {list(indexes)} of {file.name!r}, which has no such message"
            )
        names.append(level[index].name)
        level = level[index].nested_type
    return ".".join(names)


def place_of(file: FileDescriptorProto, full_name: str) -> list[int]:
    """Give the place of a message in a file: the opposite of `name_at`."""
    rest = full_name.removeprefix(f"{file.package}.") if file.package else full_name
    place, level = [], file.message_type
    for name in rest.split("."):
        found = [index for index, message in enumerate(level) if message.name == name]
        if not found:
            raise ConfigError(f"message {full_name!r} is not in the schema {file.name!r}")
        place.append(found[0])
        level = level[found[0]].nested_type
    return place


class Classes:
    """Makes the classes of a registered file's messages, its references included."""

    def __init__(self, registry: Registry, schema: Schema) -> None:
        self._registry = registry
        self._pool = DescriptorPool()
        self._added: set[str] = set()
        self.file = _need_description(schema)
        self._add(self.file, schema)

    def at(self, indexes: Sequence[int]) -> Any:
        """Give the class of the message at a place in the file."""
        return GetMessageClass(self._pool.FindMessageTypeByName(name_at(self.file, indexes)))

    def _add(self, file: FileDescriptorProto, schema: Schema) -> None:
        self._added.add(file.name)
        for reference in schema.references:
            if reference.name not in self._added:
                self._add_reference(reference)
        for name in file.dependency:
            self._add_known(name)
        try:
            self._pool.Add(file)
        except TypeError as error:
            raise ConfigError(
                f"the Protobuf schema {file.name!r} cannot be used: {error}"
            ) from error

    def _add_reference(self, reference: Reference) -> None:
        registered = self._registry.version(reference.subject, reference.version, SERIALIZED)
        file = _need_description(registered.schema)
        file.name = reference.name
        self._add(file, registered.schema)

    def _add_known(self, name: str) -> None:
        found = _GOOGLES.fullmatch(name)
        if not found or name in self._added:
            return
        descriptor = import_module(f"google.{found[1]}.{found[2]}_pb2").DESCRIPTOR
        self._add(FileDescriptorProto.FromString(descriptor.serialized_pb), Schema("", PROTOBUF))


def _need_description(schema: Schema) -> FileDescriptorProto:
    if (file := described(schema)) is not None:
        return file
    raise ConfigError(
        "the registry gives this Protobuf schema as .proto text, from which no class can be made here: "
        "give the message class, Protobuf(registry, CLASS)"
    )
