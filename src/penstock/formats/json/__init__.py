"""JSON: a scalar as `[1]`, a vector as an array, a table by column, a mapping as an object.

orjson does the work; this file prevents its silent conversions: infinities to null, and whole numbers
beyond 64 bits to floats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import orjson

from penstock.errors import FormatError
from penstock.formats.format_values import ALLOWED, Shape, shape
from penstock.formats.json import json_columns
from penstock.formats.limits import SMALLEST, check_size

# Every digit becomes 0, every other byte a blank: a long number is then a substring to look for.
_DIGITS = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG = 19
_LONG_NUMBER = b"0" * _LONG
# What Python takes at most for an object, a list, an item of either, and a text.
_OBJECT, _LIST, _ITEM, _PAIR, _TEXT = 232, 72, 40, 104, 56
# A character beyond ASCII makes its whole text up to four times as long.
_WIDEST = 4
# The maximum ratio of memory to text: shorter texts need no count.
_FACTOR = 128


class Json:
    """JSON; docs/formats.md has the conversions. Reading returns plain Python.

    >>> Json().encode(1), Json().encode({"a": [1, None]}), Json().decode(b'{"a": 1}')
    (b'[1]', b'{"a":[1,null]}', {'a': 1})
    """

    name = "json"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Return the JSON text of a value."""
        document = [value] if shape(value) is Shape.SCALAR else value
        try:
            data = orjson.dumps(document, plain, orjson.OPT_PASSTHROUGH_DATACLASS)
        except TypeError as error:
            if isinstance(error.__cause__, FormatError):
                raise error.__cause__ from error
            raise FormatError(
                f"no JSON for this value: {error}; give {ALLOWED}, with text for keys"
            ) from error
        if b"null" in data:
            json_columns.refuse_infinity(document)
        return data

    def decode(self, data: bytes, topic: str = "") -> Any:  # noqa: ARG002
        """Return the plain Python value of a JSON text."""
        check_json(data)
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise FormatError(f"not JSON: {error}") from error
        return _exact(data) if _has_long_number(data) else value

    def decode_all(self, texts: Sequence[bytes]) -> list[Any]:
        """Return the values of some texts, as `decode` does for each; raise where it would for one.

        >>> Json().decode_all([b'{"a": 1}', b"18446744073709551617"])
        [{'a': 1}, 18446744073709551617]
        """
        longest = max(map(len, texts), default=0)
        # A long number that they do not have together, none of them has.
        if longest * _FACTOR > SMALLEST or _has_long_number(b" ".join(texts)):
            return [self.decode(text) for text in texts]
        try:
            return list(map(orjson.loads, texts))
        except orjson.JSONDecodeError as error:
            raise FormatError(f"not JSON: {error}") from error


def plain(value: Any) -> Any:
    """Turn what orjson does not know into what it does."""
    if json_columns.is_null(value):
        return None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_infinite():
        raise FormatError("JSON has no infinity; send null or text instead")
    if isinstance(value, Decimal | IPv4Address | IPv6Address):
        return str(value)
    if isinstance(value, float) and type(value).__module__ != "numpy":
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    return json_columns.plain(value, shape(value))


def _has_long_number(data: bytes) -> bool:
    return len(data) >= _LONG and _LONG_NUMBER in data.translate(_DIGITS)


def _exact(data: bytes) -> Any:
    """Read again with whole numbers of any length: orjson rounds those beyond 64 bits to a float."""
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"JSON beyond Python's limits: {error}") from error


def check_json(data: bytes) -> None:
    """Raise `FormatError` where the objects would take more memory than is allowed."""
    if len(data) * _FACTOR > SMALLEST:
        check_size(json_size(data), "JSON")


def json_size(data: bytes) -> int:
    """Count the bytes of a text's objects by its punctuation, rather too many than too few."""
    ascii_only = data.isascii() and b"\\u" not in data
    return (
        data.count(b"{") * _OBJECT
        + data.count(b"[") * _LIST
        + data.count(b",") * _ITEM
        + data.count(b":") * _PAIR
        + data.count(b'"') * _TEXT // 2
        + len(data) * (1 if ascii_only else _WIDEST)
    )
