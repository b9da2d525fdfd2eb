"""How much memory a Protobuf message takes, counted by its tags before it is parsed.

A message inside a message takes two bytes when it is empty, and room for all its fields in memory.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from penstock.errors import FormatError
from penstock.formats.limits import SMALLEST, Budget

_MESSAGE, _FIELD, ITEM = 128, 24, 32
_VARINT, _FIXED64, _BYTES, _GROUP, _END, _FIXED32 = range(6)
_FIXED = {_FIXED64: 8, _FIXED32: 4}
# A number of a packed field takes a byte, and eight in memory.
PACKED = 16
_TEXTS = (9, 12)
_DEEPEST = 100


def check_message(body: bytes, start: int, descriptor: Any) -> None:
    """Raise `FormatError` where the message would take more memory than is allowed."""
    if (len(body) - start) * size_factor(descriptor) > SMALLEST:
        _Count(body).message(start, len(body), descriptor, 0)


@lru_cache(maxsize=256)
def size_factor(descriptor: Any) -> int:
    """Return the maximum ratio of memory to size of a message: it may consist of empty messages."""
    waiting, seen = [descriptor], {descriptor.full_name}
    widest = 0
    while waiting:
        current = waiting.pop()
        widest = max(widest, message_room(current))
        inner = [field.message_type for field in current.fields if field.message_type is not None]
        waiting += [each for each in inner if each.full_name not in seen]
        seen.update(each.full_name for each in inner)
    return widest // 2 + PACKED


def message_room(descriptor: Any) -> int:
    """Return the memory of one message without its values."""
    return ITEM if descriptor is None else _MESSAGE + _FIELD * len(descriptor.fields)


class _Count:
    """Counts one message; what is broken in it is left for the parser to refuse."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.budget = Budget("a Protobuf message")

    def message(self, at: int, end: int, descriptor: Any, depth: int) -> int:
        """Count the message at a place, and return the place after it."""
        if depth > _DEEPEST:
            raise FormatError(f"messages are nested more than {_DEEPEST} deep")
        self.budget.spend(message_room(descriptor))
        fields = {} if descriptor is None else descriptor.fields_by_number
        while at < end:
            tag, at = _varint(self.body, at, end)
            kind, field = tag & 7, fields.get(tag >> 3)
            if kind == _END:
                return at
            self.budget.spend(ITEM)
            if kind == _GROUP:
                inner = None if field is None else field.message_type
                at = self.message(at, end, inner, depth + 1)
            elif kind == _BYTES:
                at = self._counted(at, end, field, depth)
            elif kind == _VARINT:
                at = _varint(self.body, at, end)[1]
            else:
                at += _FIXED.get(kind, end)
        return at

    def _counted(self, at: int, end: int, field: Any, depth: int) -> int:
        size, at = _varint(self.body, at, end)
        stop = min(at + size, end)
        if field is not None and field.message_type is not None:
            self.message(at, stop, field.message_type, depth + 1)
        else:
            text = field is None or field.type in _TEXTS
            self.budget.spend((stop - at) * (1 if text else PACKED))
        return stop


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    number = shift = 0
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    return number, end
