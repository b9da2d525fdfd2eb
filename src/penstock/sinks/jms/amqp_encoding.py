"""Messages of AMQP 1.0 as bytes, with what JMS adds to them."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

# What the annotations x-opt-jms-msg-type and x-opt-jms-dest say.
KINDS = {"message": 0, "map": 2, "bytes": 3, "stream": 4, "text": 5}
_DESTINATIONS = {"queue": 0, "topic": 1}
_HEADER, _ANNOTATIONS, _PROPERTIES, _APPLICATION, _DATA, _SEQUENCE, _VALUE = (
    bytes([0, 0x53, code]) for code in (0x70, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77)
)
_NULL = b"\x40"
_LONG = range(-(2**63), 2**63)


class Envelope(NamedTuple):
    """What all messages of a sink have in common."""

    destination_kind: str = "queue"
    persistent: bool = True
    priority: int = 4
    # Milliseconds; None: messages do not expire.
    ttl: int | None = None

    def header(self) -> bytes:
        """Return the section that brokers look at: durable, priority and time to live."""
        durable = b"\x41" if self.persistent else b"\x42"
        life = _NULL if self.ttl is None else b"\x70" + struct.pack(">I", self.ttl)
        return _HEADER + _list([durable, b"\x50" + bytes([self.priority]), life])

    def annotations(self, kind: str) -> bytes:
        """Return what tells JMS clients the kind of message and destination."""
        noted = {
            "x-opt-jms-msg-type": KINDS[kind],
            "x-opt-jms-dest": _DESTINATIONS[self.destination_kind],
        }
        pairs = [part for name, code in noted.items() for part in (_symbol(name), _byte(code))]
        return _ANNOTATIONS + _compound(0xC1, 0xD1, pairs)


class Properties(NamedTuple):
    """The properties of one message, in the order of AMQP 1.0."""

    message_id: str | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: str | None = None
    expires: int | None = None
    created: int | None = None
    group_id: str | None = None

    def section(self) -> bytes:
        """Return the section of the message."""
        user_id = content_type = content_encoding = _NULL
        fields = [
            _text(self.message_id), user_id, _text(self.to), _text(self.subject),
            _text(self.reply_to), _text(self.correlation_id), content_type, content_encoding,
            _time(self.expires), _time(self.created), _text(self.group_id),
        ]  # fmt: skip
        return _PROPERTIES + _list(fields)


def application_properties(given: dict[str, Any]) -> bytes:
    """Return the section of the properties that the sender chose; nothing where there are none."""
    return _APPLICATION + _map(given) if given else b""


def body(kind: str, value: Any) -> bytes:
    """Return the section of the body.

    >>> body("text", "ok")
    b'\\x00Sw\\xa1\\x02ok'
    """
    if kind == "bytes":
        return _DATA + _binary(value)
    if kind == "stream":
        return _SEQUENCE + _compound(0xC0, 0xD0, [encoded(each) for each in value])
    return _VALUE + (_map(value) if kind == "map" else _text(value))


def encoded(value: Any) -> bytes:
    """Return a value that JMS knows: text, bytes, a boolean, a number, null.

    >>> encoded(True), encoded(None)
    (b'A', b'@')
    """
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return b"\x41" if value else b"\x42"
    if isinstance(value, int):
        if value not in _LONG:
            raise ValueError(f"the number {value} has more than 64 bits")
        return b"\x81" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\x82" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return _binary(value)
    return _text(str(value))


def _map(given: dict[str, Any]) -> bytes:
    return _compound(0xC1, 0xD1, [part for pair in given.items() for part in map(encoded, pair)])


def _list(parts: list[bytes]) -> bytes:
    while parts and parts[-1] == _NULL:
        parts.pop()
    return _compound(0xC0, 0xD0, parts)


def _compound(short: int, long: int, parts: list[bytes]) -> bytes:
    content = b"".join(parts)
    if len(content) < 255 and len(parts) < 256:
        return bytes([short, len(content) + 1, len(parts)]) + content
    return bytes([long]) + struct.pack(">II", len(content) + 4, len(parts)) + content


def _sized(short: int, long: int, content: bytes) -> bytes:
    if len(content) < 256:
        return bytes([short, len(content)]) + content
    return bytes([long]) + struct.pack(">I", len(content)) + content


def _text(value: str | None) -> bytes:
    return _NULL if value is None else _sized(0xA1, 0xB1, value.encode())


def _binary(value: bytes) -> bytes:
    return _sized(0xA0, 0xB0, value)


def _symbol(value: str) -> bytes:
    return _sized(0xA3, 0xB3, value.encode("ascii"))


def _byte(value: int) -> bytes:
    return b"\x51" + bytes([value])


def _time(value: int | None) -> bytes:
    return _NULL if value is None else b"\x83" + struct.pack(">q", value)
