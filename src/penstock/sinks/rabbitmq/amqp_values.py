"""The values of AMQP 0-9-1 messages: their properties and headers as bytes, and back.

pika has a codec, too. This one is for the messages themselves: it keeps what pika changes (it cuts the
fraction of floats off), reads what pika raises for (times far in the future), and is faster.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable
from datetime import datetime, timezone
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

SHORT, OCTET, TIME, TABLE = "short", "octet", "time", "table"
PROPERTIES = (
    ("content_type", SHORT),
    ("content_encoding", SHORT),
    ("headers", TABLE),
    ("delivery_mode", OCTET),
    ("priority", OCTET),
    ("correlation_id", SHORT),
    ("reply_to", SHORT),
    ("expiration", SHORT),
    ("message_id", SHORT),
    ("timestamp", TIME),
    ("type", SHORT),
    ("user_id", SHORT),
    ("app_id", SHORT),
    ("cluster_id", SHORT),
)
"""The properties of a message in the order of their flags, from bit 15 down."""
FLAGS = {name: 1 << (15 - number) for number, (name, _) in enumerate(PROPERTIES)}
LONGEST_SHORT = 255
_NUMBERS = {
    b"b": struct.Struct(">b"),
    b"B": struct.Struct(">B"),
    b"U": struct.Struct(">h"),
    b"s": struct.Struct(">h"),
    b"u": struct.Struct(">H"),
    b"I": struct.Struct(">i"),
    b"i": struct.Struct(">I"),
    b"L": struct.Struct(">q"),
    b"l": struct.Struct(">q"),
    b"f": struct.Struct(">f"),
    b"d": struct.Struct(">d"),
}
_LENGTH, _TIME, _FLAGWORD = struct.Struct(">I"), struct.Struct(">Q"), struct.Struct(">H")
_DECIMAL = struct.Struct(">Bi")
# Deeper tables are not read: Python's own stack would end first.
_DEEPEST = 50


class WrongValueError(ValueError):
    """Bytes that are not a value of AMQP, or a value that AMQP cannot have."""


class Layout(NamedTuple):
    """Which properties a message has: its headers, and the others in their order."""

    kinds: tuple[str, ...]
    names: tuple[str, ...]
    # Which of them are numbers.
    numbers: tuple[int, ...]


@lru_cache(maxsize=1000)
def _layout(flags: int) -> Layout:
    present = [each for each in PROPERTIES if flags & FLAGS[each[0]]]
    others = [each for each in present if each[1] != TABLE]
    numbers = tuple(at for at, (_, kind) in enumerate(others) if kind != SHORT)
    return Layout(tuple(kind for _, kind in present), tuple(name for name, _ in others), numbers)


def read_fields(data: bytes) -> tuple[Layout, list[Any], list[tuple[str, Any]]]:
    """Return the properties of a message as values without names, and its headers."""
    values: list[Any] = []
    headers: list[tuple[str, Any]] = []
    try:
        flags, at = data[0] << 8 | data[1], 2
        layout = _layout(flags)
        for kind in layout.kinds:
            if kind is SHORT:
                end = at + 1 + data[at]
                values.append(data[at + 1 : end])
            elif kind is OCTET:
                end = at + 1
                values.append(data[at])
            elif kind is TIME:
                end = at + 8
                values.append(_TIME.unpack_from(data, at)[0])
            else:
                headers, end = _read_table(data, at, 0)
            at = end
    except (IndexError, struct.error) as error:
        raise WrongValueError(f"the properties end too soon: {error}") from None
    if flags & 1 or at != len(data):
        raise WrongValueError("the properties are not those of AMQP 0-9-1")
    return layout, values, headers


def read_properties(data: bytes) -> dict[str, Any]:
    """Return the properties of a message: texts as bytes, numbers, and headers as a list of pairs.

    >>> read_properties(write_properties({"message_id": b"7", "priority": 3, "headers": [("a", b"x")]}))
    {'priority': 3, 'message_id': b'7', 'headers': [('a', b'x')]}
    """
    layout, values, headers = read_fields(data)
    found = dict(zip(layout.names, values, strict=True))
    return {**found, "headers": headers} if TABLE in layout.kinds else found


def _read_table(data: bytes, at: int, depth: int) -> tuple[list[tuple[str, Any]], int]:
    (length,) = _LENGTH.unpack_from(data, at)
    at += 4
    end = at + length
    pairs = []
    while at < end:
        start = at + 1
        at = start + data[at]
        name = data[start:at].decode(errors="backslashreplace")
        value, at = _read_value(data, at, depth)
        pairs.append((name, value))
    if at != end or end > len(data):
        raise WrongValueError("a table ends in the middle of a value")
    return pairs, end


def _read_value(data: bytes, at: int, depth: int) -> tuple[Any, int]:  # noqa: PLR0911
    kind = data[at : at + 1]
    at += 1
    if kind in (b"S", b"x"):
        (length,) = _LENGTH.unpack_from(data, at)
        end = at + 4 + length
        return data[at + 4 : end], end
    if number := _NUMBERS.get(kind):
        return number.unpack_from(data, at)[0], at + number.size
    if kind == b"t":
        return bool(data[at]), at + 1
    if kind == b"V":
        return None, at
    if kind == b"T":
        return _as_time(_TIME.unpack_from(data, at)[0]), at + 8
    if kind == b"D":
        places, raw = _DECIMAL.unpack_from(data, at)
        return Decimal(raw).scaleb(-places), at + 5
    if depth >= _DEEPEST:
        raise WrongValueError(f"tables are nested more than {_DEEPEST} times")
    if kind == b"F":
        pairs, at = _read_table(data, at, depth + 1)
        return dict(pairs), at
    if kind == b"A":
        return _read_array(data, at, depth + 1)
    raise WrongValueError(f"{kind!r} is not a type of AMQP 0-9-1")


def _read_array(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    (length,) = _LENGTH.unpack_from(data, at)
    at += 4
    end = at + length
    values = []
    while at < end:
        value, at = _read_value(data, at, depth)
        values.append(value)
    return values, at


def _as_time(seconds: int) -> datetime | int:
    """Return a time; the number itself where no calendar has it."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return seconds


def as_text(value: Any) -> bytes | None:
    """Return a header's value as a header of Kafka has it: texts unchanged, nested values as JSON.

    >>> as_text(b"x"), as_text(1.5), as_text(True), as_text(None), as_text([{"count": 1, "queue": b"q"}])
    (b'x', b'1.5', b'true', None, b'[{"count":1,"queue":"q"}]')
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, (dict, list, bool)):
        text = json.dumps(value, default=_plain, separators=(",", ":"), ensure_ascii=False)
    else:
        text = value if isinstance(value, str) else str(_plain(value))
    return text.encode(errors="backslashreplace")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "base64:" + base64.b64encode(value).decode()
    return str(value) if isinstance(value, Decimal) else value


def write_properties(given: dict[str, Any]) -> bytes:
    """Return properties as bytes, with their flags; those that are None are left out.

    >>> write_properties({"delivery_mode": 2, "content_type": None})
    b'\\x10\\x00\\x02'
    """
    flags, pieces = 0, [b""]
    for name, kind in PROPERTIES:
        value = given.get(name)
        if value is None:
            continue
        flags |= FLAGS[name]
        pieces.append(_written(name, kind, value))
    pieces[0] = _FLAGWORD.pack(flags)
    return b"".join(pieces)


def _written(name: str, kind: str, value: Any) -> bytes:
    if kind == SHORT:
        return write_short(value, name)
    if kind == TABLE:
        return write_headers(value)
    try:
        return _TIME.pack(value) if kind == TIME else bytes((value,))
    except (struct.error, ValueError, TypeError):
        most = 2**64 - 1 if kind == TIME else 255
        raise WrongValueError(f"{name} is {value!r}; allowed: 0 to {most}") from None


def write_short(value: str | bytes, what: str) -> bytes:
    """Return a short text as bytes.

    >>> write_short("abc", "message_id")
    b'\\x03abc'
    """
    data = value.encode() if isinstance(value, str) else value
    if len(data) > LONGEST_SHORT:
        raise WrongValueError(
            f"{what} has {len(data)} bytes, and AMQP allows {LONGEST_SHORT}: {data[:60]!r}..."
        )
    return bytes((len(data),)) + data


def write_headers(headers: Iterable[tuple[str, bytes | str | None]]) -> bytes:
    """Return headers as a table of texts; a value that is not text is sent as bytes."""
    pieces = []
    for name, value in headers:
        pieces.append(write_short(name, "the name of a header"))
        pieces.append(_header_value(value))
    body = b"".join(pieces)
    return _LENGTH.pack(len(body)) + body


def _header_value(value: bytes | str | None) -> bytes:
    if value is None:
        return b"V"
    if isinstance(value, str):
        value = value.encode()
        return b"S" + _LENGTH.pack(len(value)) + value
    try:
        value.decode()
    except UnicodeDecodeError:
        return b"x" + _LENGTH.pack(len(value)) + value
    return b"S" + _LENGTH.pack(len(value)) + value
