"""Values as text and as bytes, and bytes as values: JSON without silent conversions."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import orjson

from penstock.errors import FormatError
from penstock.flows.expressions.expression_error import ExpressionError
from penstock.formats.json import Json

_JSON = Json()
_SHAPES = frozenset({dict, list})
_BYTES = frozenset({bytes, type(None)})
_AS_WE_DO = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    bytes: "bytes",
    list: "a list",
    dict: "an object",
    datetime: "a time",
    type(None): "null",
}


def kind_of(value: Any) -> str:
    """Return what a value is, for messages.

    >>> kind_of([1]), kind_of("a"), kind_of(None)
    ('a list', 'a text', 'null')
    """
    return _KINDS.get(type(value), type(value).__name__)


def from_json(data: bytes | str, what: str = "the value") -> Any:
    """Return the value of a JSON text; NaN, numbers out of range and damaged text are refused.

    >>> from_json(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        return _JSON.decode(data.encode() if isinstance(data, str) else data)
    except (FormatError, UnicodeEncodeError) as error:
        raise ExpressionError(f"{what} is not JSON that can be read: {error}") from None


def from_jsons(texts: Sequence[bytes]) -> list[Any]:
    """Return the values of JSON texts; raise where one of them has none.

    >>> from_jsons([b'{"a": 1}', b"[2.5]"])
    [{'a': 1}, [2.5]]
    """
    return _JSON.decode_all(texts)


def time_text(value: datetime) -> str:
    """Return a time in ISO 8601, in UTC.

    >>> time_text(datetime(2024, 5, 1, 12, tzinfo=timezone.utc))
    '2024-05-01T12:00:00Z'
    """
    return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """Return what JSON can have in place of times and bytes; raise where there is nothing."""
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, bytes):
        return decoded(value)
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError(f"{value} is not a number that JSON can have")
    return value


def decoded(value: bytes) -> str:
    """Return bytes as a text; raise where they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ExpressionError(
            f"the bytes are not UTF-8 text (byte {error.start}); base64(...) makes a text of any bytes"
        ) from None


def json_of(value: Any) -> str:
    """Return a value as JSON text.

    >>> json_of({"a": [1, None, True]})
    '{"a":[1,null,true]}'
    """
    # orjson is quick, and does not write whole numbers of any length; NaN it writes as null.
    if type(value) in _SHAPES and b"null" not in (data := _quick(value)) and data:
        return data.decode()
    try:
        return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise ExpressionError(f"the value cannot be JSON: {error}") from None


def _quick(value: Any) -> bytes:
    """Return JSON as orjson writes it; nothing where it does not."""
    try:
        return orjson.dumps(value, option=_AS_WE_DO)
    except TypeError:
        return b""


def text_of(value: Any) -> str:
    """Return a value as text; objects and lists as JSON.

    >>> text_of(1.5), text_of(True), text_of(b"abc"), text_of([1])
    ('1.5', 'true', 'abc', '[1]')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return decoded(value)
    if isinstance(value, datetime):
        return time_text(value)
    if value is None:
        raise ExpressionError("the value is null; give another one with coalesce(..., 'other')")
    return json_of(value)


def bytes_of(value: Any) -> bytes | None:
    """Return a value as a message's content: bytes as they are, null as none, the others as text.

    >>> bytes_of(b"x"), bytes_of("é"), bytes_of({"a": 1}), bytes_of(None)
    (b'x', b'\\xc3\\xa9', b'{"a":1}', None)
    """
    if value is None or isinstance(value, bytes):
        return value
    if type(value) in _SHAPES and b"null" not in (data := _quick(value)) and data:
        return data
    try:
        return text_of(value).encode()
    except UnicodeEncodeError:
        raise ExpressionError(
            "the text has half of a surrogate pair, which UTF-8 cannot have"
        ) from None


def bytes_of_all(values: Sequence[Any]) -> list[bytes | None]:
    """Return values as contents of messages, each as `bytes_of` does.

    >>> bytes_of_all([{"a": 1}, "x", None])
    [b'{"a":1}', b'x', None]
    """
    kinds = set(map(type, values))
    if kinds <= _BYTES:
        return list(values)
    if kinds <= _SHAPES:
        try:
            found: list[Any] = [orjson.dumps(value, None, _AS_WE_DO) for value in values]
        except TypeError:  # a time, say, which `bytes_of` writes
            found = []
        if found and b"null" not in b"".join(found):
            return found
    return [bytes_of(value) for value in values]
