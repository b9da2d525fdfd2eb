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

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from penstock.errors import ConfigError, FormatError, nearest
from penstock.formats.registry import Reference, Registry, Schema
from penstock.formats.registry.registry_model import PROTOBUF

SERIALIZED = "serialized"

# Files that are part of every Protobuf installation.
_GOOGLES = re.compile(r"google/(protobuf|type)/([a-z_]+)\.proto")

Resolve = Callable[[str, Schema], int]


def schema_of(file: Any, resolve: Resolve) -> Schema:
    """Return the schema of a file descriptor; `resolve` returns the version of each imported file."""
    references = tuple(
        Reference(other.name, other.name, resolve(other.name, schema_of(other, resolve)))
        for other in file.dependencies
        if not _GOOGLES.fullmatch(other.name)
    )
    return Schema(b64encode(file.serialized_pb).decode(), PROTOBUF, references)


def described(schema: Schema) -> FileDescriptorProto | None:
    """Return the description of a registered file, or None where the registry gives its .proto text."""
    try:
        return FileDescriptorProto.FromString(b64decode(schema.text, validate=True))
    except (NotBase64, DecodeError):
        return None


def name_at(file: FileDescriptorProto, indexes: Sequence[int]) -> str:
    """Return the full name of the message at a place in a file."""
    names, level = [file.package] if file.package else [], file.message_type
    for index in indexes:
        if not 0 <= index < len(level):
            raise FormatError(
                f"the bytes name message {list(indexes)!r:.60} of {file.name!r}, which has no such "
                "message"
            )
        names.append(level[index].name)
        level = level[index].nested_type
    return ".".join(names)


def place_of(file: FileDescriptorProto, full_name: str) -> list[int]:
    """Return the place of a message in a file: the opposite of `name_at`."""
    rest = full_name.removeprefix(f"{file.package}.") if file.package else full_name
    place, level = [], file.message_type
    for name in rest.split("."):
        indexes = [index for index, message in enumerate(level) if message.name == name]
        if not indexes:
            raise ConfigError(f"message {full_name!r} is not in the schema {file.name!r}")
        place.append(indexes[0])
        level = level[indexes[0]].nested_type
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
        """Return the class of the message at a place in the file."""
        return GetMessageClass(self._pool.FindMessageTypeByName(name_at(self.file, indexes)))

    def named(self, full_name: str) -> Any:
        """Return the class of a message by its full name."""
        return _named(self._pool, full_name, [self.file])

    def _add(self, file: FileDescriptorProto, schema: Schema) -> None:
        self._added.add(file.name)
        for reference in schema.references:
            if reference.name not in self._added:
                version = self._registry.version(reference.subject, reference.version, SERIALIZED)
                other = _need_description(version.schema)
                other.name = reference.name
                self._add(other, version.schema)
        for name in file.dependency:
            self._add_known(name)
        try:
            self._pool.Add(file)
        except TypeError as error:
            raise ConfigError(
                f"the Protobuf schema {file.name!r} cannot be used: {error}"
            ) from error

    def _add_known(self, name: str) -> None:
        match = _GOOGLES.fullmatch(name)
        if not match or name in self._added:
            return
        try:
            descriptor = import_module(f"google.{match[1]}.{match[2]}_pb2").DESCRIPTOR
        except ImportError as error:
            raise ConfigError(
                f"the Protobuf schema imports {name!r}, which is not installed: {error}; for "
                "google/type install googleapis-common-protos"
            ) from error
        self._add(FileDescriptorProto.FromString(descriptor.serialized_pb), Schema("", PROTOBUF))


def classes_of_set(schema: Schema, full_name: str | None) -> Any:
    """Return a message's class of a set of files (in base64); by default the last file's first one."""
    files = list(FileDescriptorSet.FromString(b64decode(schema.text)).file)
    pool = DescriptorPool()
    try:
        for file in files:
            pool.Add(file)
        if full_name is None:
            return GetMessageClass(pool.FindMessageTypeByName(name_at(files[-1], [0])))
        return _named(pool, full_name, files)
    except TypeError as error:
        raise ConfigError(
            f"the descriptor cannot be used: {error}; was it written with --include_imports?"
        ) from error


def _named(pool: DescriptorPool, full_name: str, files: Sequence[FileDescriptorProto]) -> Any:
    try:
        return GetMessageClass(pool.FindMessageTypeByName(full_name))
    except KeyError:
        known = [name_at(file, [n]) for file in files for n in range(len(file.message_type))]
        raise ConfigError(
            f"there is no message {full_name!r} in the schema; {nearest(full_name, known)}"
        ) from None


def _need_description(schema: Schema) -> FileDescriptorProto:
    if (file := described(schema)) is not None:
        return file
    raise ConfigError(
        "the registry gives this Protobuf schema as .proto text, from which no class can be made here: "
        "give the message class, Protobuf(registry, CLASS)"
    )
