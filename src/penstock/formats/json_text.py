"""JSON for any value that a format can read, even if JSON has no representation for it."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Set
from typing import Any

from penstock.errors import FormatError
from penstock.formats import find_format
from penstock.formats.format_values import Shape, shape


def json_text(value: Any) -> bytes:
    """Return JSON for any value that a format can read, even if JSON has no representation for it.

    >>> json_text(1), json_text({"a": [b"x", float("inf")]})
    (b'1', b'{"a":["x","inf"]}')
    """
    try:
        data = find_format("json").encode(value)
    except FormatError:
        return json.dumps(_simple(value), ensure_ascii=False, separators=(",", ":")).encode()
    # The format writes a scalar as an array of one.
    return data[1:-1] if shape(value) is Shape.SCALAR else data


def text_or_base64(value: bytes | None) -> Any:
    """Return bytes for JSON: text where they are UTF-8, otherwise base64 in an object that says so.

    >>> text_or_base64(b"abc"), text_or_base64(bytes([255]))
    ('abc', {'base64': '/w=='})
    """
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def _simple(value: Any) -> Any:
    """Return a value that Python's json supports: bytes as text or base64, other types as text."""
    if isinstance(value, Mapping):
        return {str(_simple(key)): _simple(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_simple(each) for each in value]
    for spread in ("to_pydict", "to_pylist", "to_numpy", "tolist"):
        if hasattr(value, spread):
            return _simple(getattr(value, spread)())
    if isinstance(value, bytes):
        return text_or_base64(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
