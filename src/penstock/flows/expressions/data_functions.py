"""Functions over objects, lists and bytes: JSON, base64, hashes."""

from __future__ import annotations

import base64
import hashlib
import hmac
from binascii import Error as NotBase64
from typing import Any
from uuid import uuid4

from penstock.errors import nearest
from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.function_table import (
    as_bytes,
    as_list,
    as_object,
    as_text,
    function,
)
from penstock.flows.expressions.operators import equals
from penstock.flows.expressions.value_text import from_json, json_of, kind_of

_HASHES = ("md5", "sha1", "sha256", "sha384", "sha512")


@function("json(text)", "the value of a JSON text", "json('{\"a\": [1]}').a[0] = 1")
def _json(value: Any) -> Any:
    return from_json(as_bytes(value), "the text")


@function(
    "to_json(value)", "a value as JSON text", "to_json({a: 1}) = '{\"a\":1}'", takes_null=True
)
def _to_json(value: Any) -> str:
    return json_of(value)


@function(
    "coalesce(value, ...)",
    "the first that is not null",
    "coalesce(null, 2, 3) = 2",
    takes_null=True,
)
def _coalesce(first: Any, *others: Any) -> Any:
    return next((value for value in (first, *others) if value is not None), None)


@function(
    "nullif(value, other)", "null where both are equal", "nullif('', '') is null", takes_null=True
)
def _nullif(value: Any, other: Any) -> Any:
    return None if equals(value, other) else value


@function(
    "type(value)",
    "what a value is",
    "type([1]) = 'a list' and type(null) = 'null'",
    takes_null=True,
)
def _type(value: Any) -> str:
    return kind_of(value)


@function("uuid()", "a new random UUID", "length(uuid()) = 36")
def _uuid() -> str:
    return str(uuid4())


@function("keys(object)", "the names of the members", "keys({a: 1, b: 2}) = ['a', 'b']")
def _keys(value: Any) -> list[str]:
    return list(as_object(value))


@function(
    "merge(object, ...)",
    "one object; the last member of a name wins",
    "merge({a: 1}, {b: 2}).b = 2",
)
def _merge(first: Any, *others: Any) -> dict[str, Any]:
    merged = dict(as_object(first))
    for other in others:
        merged |= as_object(other)
    return merged


@function(
    "without(object, name, ...)", "without some members", "without({a: 1, b: 2}, 'b') = {a: 1}"
)
def _without(value: Any, *names: Any) -> dict[str, Any]:
    return {key: each for key, each in as_object(value).items() if key not in names}


@function("distinct(list)", "each element once", "distinct([1, 2, 1]) = [1, 2]")
def _distinct(values: Any) -> list[Any]:
    # By their JSON: objects have no hash, and comparing each with each takes squared time.
    found: dict[tuple[str, str], Any] = {}
    for value in as_list(values):
        found.setdefault((kind_of(value), json_of(value)), value)
    return list(found.values())


@function(
    "flatten(list)", "the elements of the lists in a list", "flatten([[1], [2, 3]]) = [1, 2, 3]"
)
def _flatten(values: Any) -> list[Any]:
    return [
        each
        for value in as_list(values)
        for each in (value if isinstance(value, list) else [value])
    ]


@function("base64(bytes)", "bytes or text in base64", "base64('abc') = 'YWJj'")
def _base64(value: Any) -> str:
    return base64.b64encode(as_bytes(value)).decode()


@function("from_base64(text)", "the bytes of base64", "text(from_base64('YWJj')) = 'abc'")
def _from_base64(value: Any) -> bytes:
    try:
        return base64.b64decode(as_text(value), validate=True)
    except (NotBase64, ValueError):
        raise ExpressionError(f"{as_text(value)[:40]!r} is not base64") from None


@function("hex(bytes)", "bytes or text in hexadecimal", "hex('AZ') = '415a'")
def _hex(value: Any) -> str:
    return as_bytes(value).hex()


@function(
    "hash(bytes[, algorithm])",
    "the hash in hexadecimal: md5, sha1, sha256 (default), sha384, sha512",
    "substring(hash('abc'), 1, 8) = 'ba7816bf'",
)
def _hash(value: Any, algorithm: Any = "sha256") -> str:
    return hashlib.new(_algorithm(algorithm), as_bytes(value), usedforsecurity=False).hexdigest()


@function(
    "hmac(bytes, key[, algorithm])",
    "the keyed hash in hexadecimal",
    "substring(hmac('abc', 'key'), 1, 8) = '9c196e32'",
)
def _hmac(value: Any, key: Any, algorithm: Any = "sha256") -> str:
    return hmac.new(as_bytes(key), as_bytes(value), _algorithm(algorithm)).hexdigest()


def _algorithm(given: Any) -> str:
    name = as_text(given).lower().replace("-", "")
    if name not in _HASHES:
        raise ExpressionError(f"{name[:40]!r} is not a hash; {nearest(name[:40], _HASHES)}")
    return name
