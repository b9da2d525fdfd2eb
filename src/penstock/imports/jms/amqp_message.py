"""A message of AMQP 1.0, section by section."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.imports.jms.amqp_values import AmqpError, read_value

_SECTIONS = {
    "amqp:header:list": 0x70, "amqp:delivery-annotations:map": 0x71, "amqp:message-annotations:map": 0x72,
    "amqp:properties:list": 0x73, "amqp:application-properties:map": 0x74, "amqp:data:binary": 0x75,
    "amqp:amqp-sequence:list": 0x76, "amqp:amqp-value:*": 0x77, "amqp:footer:map": 0x78,
}  # fmt: skip
_HEADER, _ANNOTATIONS, _PROPERTIES, _APPLICATION, _DATA, _SEQUENCE, _VALUE = (
    0x70, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77,
)  # fmt: skip
_KINDS: dict[int, type] = {
    0x70: list, 0x71: dict, 0x72: dict, 0x73: list, 0x74: dict, 0x75: bytes, 0x76: list, 0x77: object,
    0x78: dict,
}  # fmt: skip
_NAMES = (
    "message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type",
    "content_encoding", "absolute_expiry_time", "creation_time", "group_id", "group_sequence",
    "reply_to_group_id",
)  # fmt: skip


@dataclass
class AmqpMessage:
    """What a message has: None where it has nothing."""

    priority: int = 4
    delivery_count: int = 0
    annotations: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    application: dict[str, Any] = field(default_factory=dict)
    # The section of the body: data, sequence or value.
    body_kind: int | None = None
    body: Any = None

    @property
    def is_data(self) -> bool:
        """Return whether the body is bytes in sections of their own."""
        return self.body_kind == _DATA


def read_message(data: bytes) -> AmqpMessage:
    """Return a message, or raise what is wrong with its bytes.

    >>> read_message(bytes([0, 0x53, 0x77, 0xA1, 2]) + b"ok").body
    'ok'
    """
    message, at = AmqpMessage(), 0
    pieces: list[bytes] = []
    while at < len(data):
        code, at = _section(data, at)
        value, at = read_value(data, at)
        _require_kind(code, value)
        if code == _HEADER:
            _take_header(message, value)
        elif code == _ANNOTATIONS:
            message.annotations = value
        elif code == _PROPERTIES:
            pairs = zip(_NAMES, value, strict=False)
            message.properties = {name: each for name, each in pairs if each is not None}
        elif code == _APPLICATION:
            message.application = value
        elif code in (_DATA, _SEQUENCE, _VALUE):
            _take_body(message, code, value, pieces)
    if not data:
        raise AmqpError("the message has no bytes at all")
    if len(pieces) > 1:
        message.body = b"".join(pieces)
    return message


def _section(data: bytes, at: int) -> tuple[int, int]:
    if data[at] != 0:
        raise AmqpError(f"no section begins at byte {at}")
    name, at = read_value(data, at + 1)
    code = _SECTIONS.get(name) if isinstance(name, str) else name
    if not isinstance(code, int) or code not in _KINDS:
        raise AmqpError(f"there is no section {name!r} of messages")
    return code, at


def _require_kind(code: int, value: Any) -> None:
    if not isinstance(value, _KINDS[code]):
        raise AmqpError(f"the section {code:#x} of the message is a {type(value).__name__}")


def _take_header(message: AmqpMessage, fields: list[Any]) -> None:
    if len(fields) > 1 and isinstance(fields[1], int):
        message.priority = fields[1]
    if len(fields) > 4 and isinstance(fields[4], int):
        message.delivery_count = fields[4]


def _take_body(message: AmqpMessage, code: int, value: Any, pieces: list[bytes]) -> None:
    """Take a section of the body. There may be many: `pieces` of data are joined when all are read."""
    if message.body_kind is None:
        message.body_kind, message.body = code, value
    elif message.body_kind != code or code == _VALUE:
        raise AmqpError("the message has bodies of different kinds")
    elif code == _SEQUENCE:
        message.body.extend(value)
    if code == _DATA:
        pieces.append(value)
