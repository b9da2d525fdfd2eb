"""JSON: a scalar as `[1]`, a vector as an array, a table by column, a mapping as an object.

orjson does the work; this file keeps its silences out: infinities that become null, and whole numbers
beyond 64 bits that are rounded when read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import orjson

from penstock.errors import FormatError
from penstock.formats.json import columns as json_columns
from penstock.formats.values import ALLOWED, Shape, shape

# Every digit becomes 0, every other byte a blank: a long number is then a substring to look for.
_DIGITS = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG = 19
_LONG_NUMBER = b"0" * _LONG


class Json:
    """JSON; what becomes what stands in docs/formats.md. Reading gives plain Python.

    >>> Json().encode(1), Json().encode({"a": [1, None]}), Json().decode(b'{"a": 1}')
    (b'[1]', b'{"a":[1,null]}', {'a': 1})
    """

    name = "json"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the JSON text of a value."""
        document = [value] if shape(value) is Shape.SCALAR else value
        try:
            data = orjson.dumps(document, plain, orjson.OPT_PASSTHROUGH_DATACLASS)
        except TypeError as error:
            raise _refusal(error) from error
        if b"null" in data:
            json_columns.refuse_infinity(document)
        return data

    def decode(self, data: bytes, topic: str = "") -> Any:  # noqa: ARG002
        """Give the plain Python value of a JSON text."""
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise FormatError(f"no JSON: {error}") from error
        return value if len(data) < _LONG or not _has_long_number(data) else _exact(data)


def plain(value: Any) -> Any:
    """Turn what orjson does not know into what it does."""
    if json_columns.is_null(value):
        return None
    if isinstance(value, Decimal | IPv4Address | IPv6Address | date | time):
        return _text(value)
    if isinstance(value, float) and type(value).__module__ != "numpy":
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    return json_columns.plain(value, shape(value))


def _text(value: Decimal | IPv4Address | IPv6Address | date | time) -> str:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_infinite():
        raise FormatError("JSON has no infinity; send null or text instead")
    return str(value)


def _refusal(error: TypeError) -> FormatError:
    if isinstance(error.__cause__, FormatError):
        return error.__cause__
    return FormatError(f"no JSON for this value: {error}; give {ALLOWED}, with text for keys")


def _has_long_number(data: bytes) -> bool:
    return _LONG_NUMBER in data.translate(_DIGITS)


def _exact(data: bytes) -> Any:
    """Read again with whole numbers of any length: orjson rounds those beyond 64 bits to a float."""
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"no JSON that Python can hold: {error}") from error
