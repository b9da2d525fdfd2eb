"""Values of headers as SimpleHeaderConverter writes them."""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from penstock.formats.connect.json_values import logical_name
from penstock.formats.connect.schema import DATE, TIME, TIMESTAMP, Schema, Type

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def header_text(schema: Schema | None, value: Any, *, embedded: bool = False) -> str:
    """Return the text of a value; in arrays and maps texts are in quotation marks.

    >>> from penstock.formats.connect import time
    >>> header_text(None, {"a": [1, "x"]}), header_text(time(), 1)
    ('{"a":[1,"x"]}', '00:00:00.001Z')
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"' if embedded else value
    if isinstance(value, Mapping):
        return _map_text(schema, value)
    if isinstance(value, (list, tuple)):
        inner = schema.values if schema else None
        return f"[{','.join(header_text(inner, each, embedded=True) for each in value)}]"
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    return _plain_text(schema, value)


def _map_text(schema: Schema | None, value: Mapping[Any, Any]) -> str:
    def inner(name: Any) -> tuple[Schema | None, Schema | None]:
        if schema is None:
            return None, None
        return (None, schema[name]) if schema.type is Type.STRUCT else (schema.keys, schema.values)

    members = (
        f"{header_text(inner(key)[0], key, embedded=True)}:"
        f"{header_text(inner(key)[1], each, embedded=True)}"
        for key, each in value.items()
    )
    return f"{{{','.join(members)}}}"


def _plain_text(schema: Schema | None, value: Any) -> str:
    kind = logical_name(schema) if schema else None
    if kind == TIME:
        return _moment_text(_EPOCH + timedelta(milliseconds=value))
    if kind in (DATE, TIMESTAMP) or isinstance(value, date):
        is_moment = isinstance(value, datetime)
        moment = value if is_moment else _EPOCH + (value - date(1970, 1, 1))
        return _moment_text(moment)
    if isinstance(value, float):
        return _real_text(schema, value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment_text(moment: datetime) -> str:
    """Return a moment as a time in the first day, as a date at midnight, else as both."""
    since = (moment - _EPOCH) // timedelta(milliseconds=1)
    text = f"{moment:%H:%M:%S}.{since % 1000:03d}Z"
    if since < 86_400_000:
        return text
    day = f"{moment.year:04d}-{moment:%m-%d}"
    return day if since % 86_400_000 == 0 else f"{day}T{text}"


def _real_text(schema: Schema | None, value: float) -> str:
    """Return a number as Java prints it: with few digits, and an exponent where it is far from 1."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    digits = repr(value)
    if schema is not None and schema.type is Type.FLOAT32:
        digits = _shortest_float32(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return (
            digits
            if "." in digits and "e" not in digits
            else f"{Decimal(digits):f}".split(".")[0] + ".0"
        )
    sign, numbers, exponent = Decimal(digits).normalize().as_tuple()
    rest = "".join(map(str, numbers[1:])) or "0"
    return f"{'-' if sign else ''}{numbers[0]}.{rest}E{len(numbers) - 1 + int(exponent)}"


def _shortest_float32(value: float) -> str:
    for size in range(1, 10):
        text = f"{value:.{size}g}"
        if struct.unpack(">f", struct.pack(">f", float(text)))[0] == value:
            return str(float(text))
    return repr(value)
