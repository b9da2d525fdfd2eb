"""Values of Google's well-known Protobuf types as values of columns."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import Any

import orjson

from penstock.decode.kernels.outcome import MisfitError

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The seconds of the years 1 to 9999."""
MOST_SECONDS = 315_576_000_000
"""The seconds of the longest Duration, about 10,000 years."""
NANOS = 1_000_000_000
# Larger numbers are not exact as a double, and are printed with an exponent.
_EXACT = 2**53


def micros_of(timestamp: Any, path: str) -> int:
    """Return a Timestamp in microseconds since 1970, nanoseconds truncated.

    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> micros_of(Timestamp(seconds=-1, nanos=999_999_999), "at")
    -1
    """
    seconds, nanos = timestamp.seconds, timestamp.nanos
    if not FIRST_SECOND <= seconds <= LAST_SECOND or not 0 <= nanos < NANOS:
        shown = f"{seconds} seconds and {nanos} nanoseconds"
        raise MisfitError("OutOfRange", f"{path}: {shown} are not a time of the years 1 to 9999")
    return int(seconds * 1_000_000 + nanos // 1000)


def duration_of(duration: Any, path: str) -> Decimal:
    """Return a Duration in seconds.

    >>> from google.protobuf.duration_pb2 import Duration
    >>> duration_of(Duration(seconds=-1, nanos=-500_000_000), "took")
    Decimal('-1.500000000')
    """
    seconds, nanos = duration.seconds, duration.nanos
    if abs(seconds) > MOST_SECONDS or abs(nanos) >= NANOS or seconds * nanos < 0:
        shown = f"{seconds} seconds and {nanos} nanoseconds"
        raise MisfitError(
            "OutOfRange",
            f"{path}: {shown} are not a duration: at most {MOST_SECONDS} seconds, of one sign",
        )
    return Decimal(seconds * NANOS + nanos).scaleb(-9)


def json_of(value: Any, path: str) -> str:
    """Return a Struct, Value or ListValue as JSON text with sorted keys.

    >>> from google.protobuf.struct_pb2 import Struct
    >>> value = Struct()
    >>> value.update({"b": [1, 2.5, None], "a": {"x": True}})
    >>> json_of(value, "extra")
    '{"a":{"x":true},"b":[1,2.5,null]}'
    """
    return orjson.dumps(_plain(value, path), option=orjson.OPT_SORT_KEYS).decode()


def _plain(value: Any, path: str) -> Any:
    name = value.DESCRIPTOR.name
    if name == "Struct":
        return {key: _plain(each, path) for key, each in value.fields.items()}
    if name == "ListValue":
        return [_plain(each, path) for each in value.values]
    kind = value.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    given = getattr(value, kind)
    if kind == "number_value":
        return _number(given, path)
    return _plain(given, path) if kind in ("struct_value", "list_value") else given


def _number(number: float, path: str) -> int | float:
    if not isfinite(number):
        raise MisfitError("OutOfRange", f"{path}: {number} is not a number of JSON")
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number
