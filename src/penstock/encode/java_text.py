"""Numbers and texts as Java and Jackson print them: what a program compares byte for byte stays equal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import as_bytes, joined

_SPECIAL = r'["\\\x00-\x1f\x{10000}-\x{10ffff}]'
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class _Escapes(dict[int, str]):
    """What stands for a character; those beyond 16 bits are two escapes."""

    def __missing__(self, code: int) -> str:
        if code < 0x10000:
            raise LookupError
        rest = code - 0x10000
        return f"\\u{0xD800 + (rest >> 10):04X}\\u{0xDC00 + (rest & 0x3FF):04X}"


_ESCAPES = _Escapes(
    {code: f"\\u{code:04X}" for code in range(32)} | {ord(sign): t for sign, t in _SHORT.items()}
)


def java_reals(column: pa.Array) -> pa.Array:
    """Return floating-point numbers as `Double.toString` prints them, with the fewest digits.

    From 10**-3 to 10**7 they are plain, others have an exponent. Java before 19 prints a digit more of
    some numbers, which stands for the same number.

    >>> java_reals(pa.array([1.0, -0.0, 12345678.5, 1e-4, 1.5e300, float("nan"), None])).to_pylist()
    ['1.0', '-0.0', '1.23456785E7', '1.0E-4', '1.5E300', 'NaN', None]
    """
    size = pc.abs(column)
    texts = size.cast(pa.string())
    plain = pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7))
    plain = pc.or_(plain, pc.equal(size, 0))
    text = pc.if_else(plain, _with_point(texts), _with_exponent(texts))
    text = pc.if_else(pc.is_inf(column), "Infinity", text)
    signed = pc.if_else(_is_negative(column), pc.binary_join_element_wise("-", text, ""), text)
    return pc.if_else(pc.is_nan(column), "NaN", signed)


def _is_negative(column: pa.Array) -> pa.Array:
    # A zero has no order, and a text of -0 begins with its sign.
    return pc.starts_with(column.cast(pa.string()), "-")


def _with_point(texts: pa.Array) -> pa.Array:
    whole = pc.invert(pc.match_substring(texts, "."))
    return pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)


def _with_exponent(texts: pa.Array) -> pa.Array:
    """Return numbers as one digit, a point, digits and an exponent; null for those without digits."""
    return pc.coalesce(_printed(texts), _large(texts), _small(texts))


def _printed(texts: pa.Array) -> pa.Array:
    """Return those that Arrow prints with an exponent."""
    parts = pc.extract_regex(texts, r"^(?P<first>\d)(?:\.(?P<rest>\d+))?[eE]\+?(?P<power>-?\d+)$")
    power = pc.replace_substring_regex(parts.field("power"), r"^(-?)0+(\d)", r"\1\2")
    return _scientific(_valid(parts, "first"), parts.field("rest"), power)


def _large(texts: pa.Array) -> pa.Array:
    """Return those of eight digits and more before the point."""
    parts = pc.extract_regex(texts, r"^(?P<first>[1-9])(?P<whole>\d{7,})(?:\.(?P<rest>\d+))?$")
    whole = parts.field("whole")
    digits = pc.binary_join_element_wise(whole, pc.fill_null(parts.field("rest"), ""), "")
    power = pc.binary_length(whole).cast(pa.string())
    return _scientific(_valid(parts, "first"), digits, power)


def _small(texts: pa.Array) -> pa.Array:
    """Return those that begin with zeros after the point."""
    parts = pc.extract_regex(texts, r"^0\.(?P<zeros>0+)(?P<first>[1-9])(?P<rest>\d*)$")
    power = pc.negate(pc.add(pc.binary_length(parts.field("zeros")), 1)).cast(pa.string())
    return _scientific(_valid(parts, "first"), parts.field("rest"), power)


def _valid(parts: pa.Array, name: str) -> pa.Array:
    return pc.if_else(parts.is_valid(), parts.field(name), pa.scalar(None, pa.string()))


def _scientific(first: pa.Array, rest: pa.Array, power: pa.Array) -> pa.Array:
    digits = pc.utf8_rtrim(pc.fill_null(rest, ""), "0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    return pc.binary_join_element_wise(first, ".", digits, "E", pc.fill_null(power, ""), "")


def jackson_texts(column: pa.Array) -> pa.Array:
    r"""Return texts as JSON, with the escapes of Jackson: upper case, and no more than JSON needs.

    >>> jackson_texts(pa.array(["é/", "a\x1f\n\""])).to_pylist()
    [b'"\xc3\xa9/"', b'"a\\u001F\\n\\""']
    """
    special = pc.match_substring_regex(column, _SPECIAL)
    plain = joined(b'"', as_bytes(column), b'"')
    if not pc.any(special).as_py():
        return plain
    escaped = [
        f'"{each.translate(_ESCAPES)}"'.encode() for each in column.filter(special).to_pylist()
    ]
    return pc.replace_with_mask(plain, special, pa.array(escaped, pa.binary()))


def jackson_document(document: Any) -> str:
    """Return a document of objects, lists and plain values as Jackson writes it.

    >>> jackson_document({"type": "double", "default": 1e-7, "doc": "\\x1f"})
    '{"type":"double","default":1.0E-7,"doc":"\\\\u001F"}'
    """
    if isinstance(document, Mapping):
        members = (f"{_quoted(key)}:{jackson_document(each)}" for key, each in document.items())
        return f"{{{','.join(members)}}}"
    if isinstance(document, list):
        return f"[{','.join(map(jackson_document, document))}]"
    if isinstance(document, str):
        return _quoted(document)
    if isinstance(document, float):
        text = str(java_reals(pa.array([document], pa.float64()))[0].as_py())
        return text if math.isfinite(document) else f'"{text}"'
    if document is None:
        return "null"
    return str(document).lower() if isinstance(document, bool) else str(document)


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'
