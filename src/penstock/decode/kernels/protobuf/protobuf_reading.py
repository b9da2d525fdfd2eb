"""Protobuf messages to Arrow columns by protobuf's own parser: exact for every body.

The class that parses keeps the numbers of enums. Protobuf itself drops a number that a proto2 enum does
not have, so that a value which a later version added would be lost silently.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from penstock.decode.kernels.outcome import Failure, MisfitError
from penstock.decode.kernels.protobuf.protobuf_columns import struct_columns
from penstock.decode.kernels.protobuf.protobuf_types import Column
from penstock.errors import FormatError
from penstock.formats.protobuf.protobuf_size import check_message


class ProtobufReference:
    """Reads bodies one by one into messages, and those column by column into rows."""

    def __init__(self, message: Descriptor, columns: tuple[Column, ...], schema: pa.Schema) -> None:
        self._descriptor = message
        self._schema = schema
        self._parse = reading_class(message).FromString
        self._required = _has_required(message)
        self._columns = struct_columns(columns, "")

    def __call__(self, bodies: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
        """Return the rows of the good bodies, in order, and a failure for each of the others."""
        messages, indexes, failures = [], [], []
        for index, body in enumerate(bodies.to_numpy(zero_copy_only=False).tolist()):
            try:
                messages.append(self._message(body))
                indexes.append(index)
            except MisfitError as misfit:
                failures.append(_failure(index, misfit))
        batches: list[pa.RecordBatch] = [pa.RecordBatch.from_pylist([], schema=self._schema)]
        self._build(messages, indexes, batches, failures)
        return pa.concat_batches(batches), sorted(failures, key=lambda each: each.index)

    def _message(self, body: bytes) -> Any:
        try:
            check_message(body, 0, self._descriptor)
            message = self._parse(body)
        except FormatError as error:
            raise MisfitError("TooLarge", str(error)) from None
        except DecodeError as error:
            raise MisfitError(
                "MalformedProtobuf", f"these {len(body)} bytes are not Protobuf: {error}"
            ) from None
        if self._required and not message.IsInitialized():
            missing = message.FindInitializationErrors()
            raise MisfitError("MissingField", f"required fields are missing: {missing}")
        return message

    def _build(
        self,
        messages: list[Any],
        indexes: list[int],
        batches: list[pa.RecordBatch],
        failures: list[Failure],
    ) -> None:
        """Build the rows; where a value does not fit, halve the messages until it is isolated."""
        try:
            arrays = self._columns(messages)
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        except MisfitError as misfit:
            if len(messages) == 1:
                failures.append(_failure(indexes[0], misfit))
                return
            half = len(messages) // 2
            self._build(messages[:half], indexes[:half], batches, failures)
            self._build(messages[half:], indexes[half:], batches, failures)


def _failure(index: int, misfit: MisfitError) -> Failure:
    return Failure(index, misfit.error_type, str(misfit))


def reading_class(message: Descriptor) -> Any:
    """Return a class for a message in which enums of fixed values are plain numbers."""
    pool, added = DescriptorPool(), set[str]()

    def add(file: Any) -> None:
        if file.name in added:
            return
        added.add(file.name)
        for other in file.dependencies:
            add(other)
        pool.Add(_without_closed_enums(file))

    add(message.file)
    return GetMessageClass(pool.FindMessageTypeByName(message.full_name))


def _without_closed_enums(file: Any) -> FileDescriptorProto:
    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    for message in proto.message_type:
        _open_enums(message, file.message_types_by_name[message.name])
    return proto


def _open_enums(proto: DescriptorProto, message: Descriptor) -> None:
    for field in proto.field:
        enum = message.fields_by_number[field.number].enum_type
        if enum is not None and enum.is_closed:
            field.type = FieldDescriptorProto.TYPE_INT32
            field.ClearField("type_name")
            field.ClearField("default_value")
    for nested in proto.nested_type:
        _open_enums(nested, message.nested_types_by_name[nested.name])


def _has_required(message: Descriptor) -> bool:
    waiting, known = [message], {message.full_name}
    while waiting:
        current = waiting.pop()
        if any(field.is_required for field in current.fields):
            return True
        inner = [field.message_type for field in current.fields if field.message_type is not None]
        waiting += [each for each in inner if each.full_name not in known]
        known.update(each.full_name for each in inner)
    return False
