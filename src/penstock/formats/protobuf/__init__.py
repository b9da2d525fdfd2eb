"""Protobuf with its schema in the registry; the place of the message in its file goes before the body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from penstock.errors import ConfigError, FormatError
from penstock.formats.protobuf.protobuf_schema import (
    SERIALIZED,
    Classes,
    described,
    name_at,
    place_of,
    schema_of,
)
from penstock.formats.protobuf.protobuf_size import check_message
from penstock.formats.registry.registered import Read, RegistryFormat, SubjectName, Write
from penstock.formats.registry.registry_client import Bounded, Registry
from penstock.formats.registry.registry_model import PROTOBUF, Schema


class Protobuf(RegistryFormat):
    """Protobuf messages, with registered schemas.

    With a message class it writes and reads that message. Without one it only reads, into classes made
    from the registered schemas. Files that the message's file imports are registered under their own
    names, and referred to.

    Examples
    --------
    ::

        trades = Protobuf(registry, Trade)
        producer.produce("trades", value=trades.encode(Trade(price=1.5), "trades"))
    """

    name = "protobuf"
    kind = PROTOBUF
    form = SERIALIZED

    def __init__(
        self,
        registry: Registry,
        message: type[Message] | None = None,
        *,
        subject: str | SubjectName = "topic",
        part: str = "value",
        auto_register: bool = True,
        use_latest: bool = False,
    ) -> None:
        super().__init__(
            registry, subject=subject, part=part, auto_register=auto_register, use_latest=use_latest
        )
        if message is not None and not hasattr(message, "DESCRIPTOR"):
            raise ConfigError(f"message={message!r}: give the class of a Protobuf message")
        self._message: Any = message

    def _record_name(self) -> str:
        return str(self._need().DESCRIPTOR.full_name)

    def _own_schema(self) -> Schema:
        return schema_of(self._need().DESCRIPTOR.file, self._resolve)

    def _resolve(self, subject: str, schema: Schema) -> int:
        if self._register:
            self.registry.register(subject, schema)
        return self.registry.lookup(subject, schema).version

    def _need(self) -> Any:
        if self._message is None:
            raise ConfigError(
                "Protobuf without a message class can only read: give Protobuf(registry, CLASS)"
            )
        return self._message

    def _writer(self, schema: Schema) -> Write:
        message = self._need()
        file = described(schema) or described(self._own_schema())
        head = write_place(place_of(file, self._record_name())) if file else b""

        def write(value: Any) -> bytes:
            if not isinstance(value, message):
                raise FormatError(
                    f"{type(value).__name__} is not a {self._record_name()}: give a message of that class"
                )
            body: bytes = value.SerializeToString()
            return head + body

        return write

    def _reader(self, schema: Schema) -> Read:
        classes: Bounded[tuple[int, ...], Any] = Bounded()
        find = self._own_class(schema) if self._message else Classes(self.registry, schema).at

        def read(body: bytes) -> Any:
            place, start = read_place(body)
            message = classes.get(place)
            if message is None:
                message = classes[place] = find(place)
            check_message(body, start, message.DESCRIPTOR)
            value = message.FromString(body[start:])
            if not value.IsInitialized():
                raise FormatError(
                    f"required fields are missing: {value.FindInitializationErrors()}"
                )
            return value

        return read

    def _own_class(self, schema: Schema) -> Any:
        file, own = described(schema), self._message.DESCRIPTOR

        def find(place: Sequence[int]) -> Any:
            # Any message parses as almost any other, so only the names distinguish them.
            name = name_at(file, place) if file else own.full_name
            if name.rpartition(".")[2] != own.name:
                raise FormatError(f"the bytes hold a {name}, and this format reads {own.full_name}")
            return self._message

        return find


def write_place(place: Sequence[int]) -> bytes:
    """Write the place of a message in its file; the first message has a short form.

    >>> write_place([0]), write_place([1, 0])
    (b'\\x00', b'\\x04\\x02\\x00')
    """
    if list(place) == [0]:
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(place), *place))


def read_place(body: bytes) -> tuple[tuple[int, ...], int]:
    """Read the place of a message, and where its body starts.

    >>> read_place(b"\\x04\\x02\\x00rest")
    ((1, 0), 3)
    """
    count, at = _number(body, 0)
    if count == 0:
        return (0,), at
    place = []
    for _ in range(count):
        index, at = _number(body, at)
        place.append(index)
    return tuple(place), at


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(body) or shift > 28:
            raise FormatError("the place of the message in its file is cut off or too long")
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if number & 1:
        raise FormatError("the place of the message in its file is negative")
    return number >> 1, at
