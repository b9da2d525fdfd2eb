"""Protobuf records, with or without a schema registry."""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError
from pydantic import Field, model_validator

from penstock.decode.kernels.merging import merged, of_records
from penstock.decode.kernels.outcome import Decoded, Failure
from penstock.decode.kernels.protobuf.protobuf_kernel import ProtobufBodies, protobuf_table_schema
from penstock.decode.kernels.registry_kernel import BodyReader, FormatColumns
from penstock.decode.registry_decode import RegistryDecode
from penstock.errors import ConfigError, FormatError
from penstock.formats.protobuf import read_place, write_place
from penstock.formats.protobuf.protobuf_schema import (
    SERIALIZED,
    Classes,
    classes_of_set,
    place_of,
)
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.registry_model import PROTOBUF
from penstock.pipeline.schema import Schema as Columns


@dataclass(frozen=True)
class ProtobufColumns(FormatColumns):
    """Protobuf's messages as columns; `message` is a full name, without one it is the file's first."""

    kind = PROTOBUF
    form = SERIALIZED
    message: str | None = None

    def table_schema(self, schema: Schema, registry: Registry | None) -> Columns:
        """Return the fields of the message."""
        return protobuf_table_schema(self._descriptor(schema, registry))

    def bodies(self, written: Schema, wanted: Schema, registry: Registry | None) -> BodyReader:
        """Return what reads messages of the one file as those of the other."""
        own = self._descriptor(wanted, registry)
        if registry is None:
            return ProtobufBodies(own, own)
        return _PlacedBodies(Classes(registry, written), own)

    def _descriptor(self, schema: Schema, registry: Registry | None) -> Any:
        if registry is None:
            return classes_of_set(schema, self.message).DESCRIPTOR
        classes = Classes(registry, schema)
        if self.message:
            return classes.named(self.message).DESCRIPTOR
        return classes.at(_first_place(classes.file)).DESCRIPTOR


class _PlacedBodies:
    """Reads bodies that begin with the place of their message in its file."""

    def __init__(self, classes: Classes, wanted: Any) -> None:
        self._classes = classes
        self._wanted = wanted
        self._readers: dict[tuple[int, ...], ProtobufBodies] = {}
        place = _usual_place(classes.file, wanted)
        self._usual = self._reader(place)
        self._prefix = write_place(place)

    def __call__(self, bodies: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
        """Read the bodies; all of the wanted message in one pass."""
        if pc.all(pc.starts_with(bodies, self._prefix), min_count=0).as_py():
            return self._usual(pc.binary_replace_slice(bodies, 0, len(self._prefix), b""))
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        rests: dict[int, bytes] = {}
        failures = []
        for index, body in enumerate(bodies.to_pylist()):
            try:
                place, start = read_place(body)
                self._reader(place)
            except ConfigError as error:
                failures.append(Failure(index, "IncompatibleSchema", str(error)))
            except FormatError as error:
                failures.append(Failure(index, type(error).__name__, str(error)))
            else:
                groups[place].append(index)
                rests[index] = body[start:]
        return self._grouped(groups, rests, failures)

    def _grouped(
        self,
        groups: dict[tuple[int, ...], list[int]],
        rests: dict[int, bytes],
        failures: list[Failure],
    ) -> tuple[pa.RecordBatch, list[Failure]]:
        none = Decoded(self._usual(pa.array([], pa.binary()))[0], ())
        parts = [(pa.array([], pa.int64()), none)]
        for place, members in groups.items():
            own = pa.array([rests[at] for at in members], pa.binary())
            decoded = of_records(*self._reader(place)(own), len(members))
            parts.append((pa.array(members, pa.int64()), decoded))
        decoded = merged(parts, failures)
        return decoded.rows, list(decoded.failures)

    def _reader(self, place: tuple[int, ...]) -> ProtobufBodies:
        if place not in self._readers:
            written = self._classes.at(place).DESCRIPTOR
            # Any message parses as almost any other, so only the names distinguish them.
            if written.name != self._wanted.name:
                raise ConfigError(
                    f"{written.full_name} was written, and {self._wanted.full_name} is wanted"
                )
            self._readers[place] = ProtobufBodies(written, self._wanted)
        return self._readers[place]


def _usual_place(file: FileDescriptorProto, wanted: Any) -> tuple[int, ...]:
    """Return where a file has the wanted message; the first place if its package is another one."""
    try:
        return tuple(place_of(file, wanted.full_name))
    except ConfigError:
        return _first_place(file)


def _first_place(file: FileDescriptorProto) -> tuple[int, ...]:
    if not file.message_type:
        raise ConfigError(f"the Protobuf schema {file.name!r} has no messages")
    return (0,)


class ProtobufDecode(RegistryDecode):
    """Protobuf messages into the columns of their type.

    Fields are matched by their numbers. Without a registry a record is the bare message.
    """

    name = "protobuf"

    message: str | None = Field(
        default=None,
        min_length=1,
        description="The full name of the message; default: the first one of the schema.",
    )
    descriptor: str | None = Field(
        default=None,
        min_length=1,
        description="For records without a registry: a file that `protoc --include_imports "
        "--descriptor_set_out=FILE` wrote.",
    )

    @model_validator(mode="before")
    @classmethod
    def _descriptor_is_the_schema(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("schema") is not None:
            raise ValueError(
                "a Protobuf schema is given with 'descriptor', a file that protoc wrote"
            )
        if isinstance(given, dict) and given.get("descriptor") and not given.get("registry"):
            return given | {"schema": str(given["descriptor"])}
        return given

    @property
    def format_columns(self) -> ProtobufColumns:
        """Return the mapping for the message."""
        return ProtobufColumns(self.message)

    def own_schema(self) -> Schema:
        """Return the files that the descriptor holds."""
        path = Path(str(self.descriptor)).expanduser()
        try:
            files = FileDescriptorSet.FromString(path.read_bytes())
        except (OSError, DecodeError) as error:
            raise ConfigError(
                f"the descriptor {str(path)!r} cannot be read: {error}; write it with protoc "
                "--include_imports --descriptor_set_out=FILE"
            ) from error
        if not files.file:
            raise ConfigError(
                f"the descriptor {str(path)!r} has no files: is it written by protoc?"
            )
        return Schema(b64encode(files.SerializeToString()).decode(), PROTOBUF)
