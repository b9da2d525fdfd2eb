"""Schemas of Connect with payloads of theirs, as JsonConverter writes them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

_NAME = "org.apache.kafka.connect.data."
_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
# A name for Spark: unlike others without regard to case. Dots, backticks, spaces and signs are allowed.
NAMES = ("a", "b.c", "d`e", "f g", "h-i", "ü", "é€", "$j", "1", "_k", "😀")
_DECIMALS = [
    {"type": "bytes", "name": f"{_NAME}Decimal", "version": 1, "parameters": {"scale": scale}}
    for scale in ("0", "2", "10", "38")
]
_SCALARS: list[dict[str, Any]] = [
    *({"type": name} for name in (*_BITS, "boolean", "string", "bytes", "double", "float")),
    {"type": "int32", "name": f"{_NAME}Date", "version": 1},
    {"type": "int32", "name": f"{_NAME}Time", "version": 1},
    {"type": "int64", "name": f"{_NAME}Timestamp", "version": 1},
    *_DECIMALS,
]
_LOGICAL = {
    # Text of Java has another calendar before 1582.
    f"{_NAME}Date": st.integers(-141_000, 2932896),
    f"{_NAME}Time": st.integers(0, 86_399_999),
    f"{_NAME}Timestamp": st.integers(-12_000_000_000_000, 253402300799999),
}
_REALS = st.floats(allow_nan=False, allow_infinity=False).map(lambda each: each + 0.0)
_SMALL_REALS = st.sampled_from([0.0, 0.5, -1.25, 16777216.0, 1.0e-10, 0.1])


def _base64(number: int) -> str:
    size = (number + (number < 0)).bit_length() // 8 + 1
    return b64encode(number.to_bytes(size, "big", signed=True)).decode()


def documents(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """Return the strategy of schemas of any type."""
    scalars = st.builds(_scalar, st.sampled_from(_SCALARS), st.booleans())
    if depth == 0:
        return scalars
    inner = documents(depth - 1)
    keys = st.sampled_from([{"type": "string"}, {"type": "int32"}]).map(
        lambda each: {**each, "optional": False}
    )
    return st.one_of(
        scalars,
        structs(depth),
        st.builds(lambda each: {"type": "array", "items": each, "optional": True}, inner),
        st.builds(lambda k, v: {"type": "map", "keys": k, "values": v}, keys, inner),
    )


def _scalar(document: dict[str, Any], optional: bool) -> dict[str, Any]:
    made = {**document, "optional": optional}
    if document == {"type": "int16"}:
        return {**made, "name": "x\x01", "version": 3, "doc": "é", "parameters": {"p": "q"}}
    return {**made, "default": 7} if document == {"type": "int32"} and optional else made


def structs(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """Return the strategy of schemas of structs."""
    field = st.tuples(st.sampled_from(NAMES), documents(depth - 1))
    return st.lists(field, unique_by=lambda each: each[0], max_size=5).map(
        lambda fields: {
            "type": "struct",
            "fields": [{**document, "field": name} for name, document in fields],
            "optional": False,
        }
    )


def payloads(document: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return the strategy of the payloads of a schema."""
    name = document.get("name")
    values = _LOGICAL[name] if name in _LOGICAL else _plain_payloads(document)
    return st.none() | values if document.get("optional") else values


def _plain_payloads(document: dict[str, Any]) -> st.SearchStrategy[Any]:
    kind = document["type"]
    if kind in _BITS:
        return st.integers(-(2 ** _BITS[kind]), 2 ** _BITS[kind] - 1)
    if kind == "struct":
        return st.fixed_dictionaries({each["field"]: payloads(each) for each in document["fields"]})
    if kind == "array":
        return st.lists(payloads(document["items"]), max_size=3)
    if kind == "map":
        made = st.dictionaries(payloads(document["keys"]), payloads(document["values"]), max_size=1)
        is_text = document["keys"]["type"] == "string"
        return made if is_text else made.map(lambda each: [[k, v] for k, v in each.items()])
    if document.get("name") == f"{_NAME}Decimal":
        return st.integers(-(10**38) + 1, 10**38 - 1).map(_base64)
    return {
        "boolean": st.booleans(),
        "string": TEXTS,
        "bytes": st.binary(max_size=6).map(lambda each: b64encode(each).decode()),
        "double": _REALS,
        "float": _SMALL_REALS,
    }[kind]


@st.composite
def schemas_with_payloads(
    draw: st.DrawFn, documents: st.SearchStrategy[dict[str, Any]]
) -> tuple[dict[str, Any], list[Any]]:
    """Draw a schema and some payloads of it that are not null."""
    document = draw(documents)
    values = payloads({**document, "optional": False})
    return document, draw(st.lists(values, min_size=1, max_size=4))
