"""A registry in memory, with the real client's calls; and Protobuf classes without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from penstock.errors import ConfigError, TransientError
from penstock.formats.registry import Registered, Registry, Schema


class MemoryRegistry(Registry):
    """Keeps schemas in a list; an id is the place there, from 1. `away` makes it raise as if it were."""

    def __init__(self) -> None:
        super().__init__("http://memory")
        self.kept: list[Registered] = []
        self.away = False
        self.asked = 0

    def _ask_memory(self) -> None:
        self.asked += 1
        if self.away:
            raise TransientError("the registry is away")

    def find(self, schema_id: int, form: str = "") -> Schema | None:
        self._ask_memory()
        return self.kept[schema_id - 1].schema if 0 < schema_id <= len(self.kept) else None

    def register(self, subject: str, schema: Schema) -> int:
        self._ask_memory()
        for found in self.kept:
            if (found.subject, found.schema) == (subject, schema):
                return found.id
        version = 1 + sum(found.subject == subject for found in self.kept)
        self.kept.append(Registered(subject, version, len(self.kept) + 1, schema))
        return len(self.kept)

    def lookup(self, subject: str, schema: Schema) -> Registered:
        self._ask_memory()
        for found in self.kept:
            if (found.subject, found.schema) == (subject, schema):
                return found
        raise ConfigError(f"not registered under subject {subject!r}")

    def version(self, subject: str, version: int, form: str = "") -> Registered:
        self._ask_memory()
        return next(f for f in self.kept if (f.subject, f.version) == (subject, version))

    def latest(self, subject: str, form: str = "") -> Registered:
        self._ask_memory()
        return [found for found in self.kept if found.subject == subject][-1]


@pytest.fixture(scope="session")
def new_registry() -> Callable[[], MemoryRegistry]:
    return MemoryRegistry


TYPES = {"double": 1, "int64": 3, "string": 9, "message": 11, "bytes": 12}


def described(name: str, messages: dict[str, dict[str, str]], imports: tuple[str, ...]) -> Any:
    """Describe a file: messages by name, their fields by name, each a type or .the.name of a message."""
    file = FileDescriptorProto(name=name, package="shop", syntax="proto3", dependency=imports)
    for message, fields in messages.items():
        added = file.message_type.add(name=message)
        for number, (field, kind) in enumerate(fields.items(), start=1):
            named = kind.startswith(".")
            added.field.add(
                name=field,
                number=number,
                label=1,
                type=TYPES["message" if named else kind],
                type_name=kind if named else None,
            )
    return file


@pytest.fixture(scope="session")
def message_class() -> Callable[..., Any]:
    """Makes the class of the last message of the last file."""

    def make(*files: Any) -> Any:
        pool = DescriptorPool()
        pool.AddSerializedFile(Timestamp.DESCRIPTOR.file.serialized_pb)
        made = [described(*file) for file in files]
        for file in made:
            pool.Add(file)
        return GetMessageClass(pool.FindMessageTypeByName(f"shop.{made[-1].message_type[-1].name}"))

    return make
