"""Values of headers from the text form of SimpleHeaderConverter, with the schema that the text implies.

A text of digits is the smallest whole number that holds it, one with a point a float, dates and times are
in ISO 8601, `[...]` is an array and `{...}` a map; everything else is the text itself. Connect reads the
first number of `12:30` and of `1,2`, and 2024-03-01 of `2024-02-30`: here these are texts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from penstock.errors import FormatError
from penstock.formats.connect import schema as schemas
from penstock.formats.connect.schema import Schema, SchemaBuilder, Type

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_WHOLE = ((schemas.INT8, 7), (schemas.INT16, 15), (schemas.INT32, 31), (schemas.INT64, 63))
_WIDER = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)
_DEEPEST = 32


class HeaderValue(NamedTuple):
    """A value and its schema; None for a null, and for arrays and maps of different kinds."""

    schema: Schema | None
    value: Any


def read_header(data: bytes | None) -> HeaderValue:
    """Return the value that the bytes of a header stand for.

    >>> read_header(b"300")[0].type.value, read_header(b"2024-02-29").value, read_header(b"a b").value
    ('int16', datetime.date(2024, 2, 29), 'a b')
    """
    if data is None:
        return HeaderValue(None, None)
    return parse_value(data.decode("utf-8", "replace"))


def parse_value(text: str) -> HeaderValue:
    """Return the value that a text stands for."""
    plain = text.strip()
    if plain == "null":
        return HeaderValue(None, None)
    if plain in ("true", "false"):
        return HeaderValue(schemas.BOOLEAN, plain == "true")
    if plain[:1] in ("[", "{"):
        try:
            return _Nested(plain).whole()
        except FormatError:
            return HeaderValue(schemas.STRING, text)
    return _single(plain) or HeaderValue(schemas.STRING, text)


def _single(text: str) -> HeaderValue | None:
    """Return the date, time or number that a text is; None for other texts."""
    if not text or not (text[0].isdigit() or text[0] in "+-"):
        return None
    return _temporal(text) or _number(text)


def _temporal(text: str) -> HeaderValue | None:
    try:
        if _DATE.fullmatch(text):
            return HeaderValue(schemas.date(), date.fromisoformat(text))
        if _TIME.fullmatch(text):
            hours, minutes, seconds = int(text[:2]), int(text[3:5]), int(text[6:8])
            if hours > 23 or minutes > 59 or seconds > 59:
                return None
            since = ((hours * 60 + minutes) * 60 + seconds) * 1000 + int(text[9:12])
            return HeaderValue(schemas.time(), since)
        if _MOMENT.fullmatch(text):
            moment = datetime.fromisoformat(f"{text[:-1]}+00:00")
            return HeaderValue(schemas.timestamp(), moment)
    except ValueError:
        return None
    return None


def _number(text: str) -> HeaderValue | None:
    if not _NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    exponent = int(number.as_tuple().exponent)
    if abs(number.adjusted()) < 20 and number == number.to_integral_value():
        for schema, bits in _WHOLE:
            if -(2**bits) <= number < 2**bits:
                return HeaderValue(schema, int(number))
    if exponent != 0:
        for schema, code in ((schemas.FLOAT32, ">f"), (schemas.FLOAT64, ">d")):
            try:
                return HeaderValue(schema, struct.unpack(code, struct.pack(code, float(number)))[0])
            except OverflowError:
                continue
    return HeaderValue(replace(schemas.decimal(0), parameters={"scale": str(-exponent)}), number)


class _Nested:
    """Reads arrays and maps, in which texts are in quotation marks."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> HeaderValue:
        read = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise FormatError("text follows the value")
        return read

    def _skip(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _takes(self, sign: str) -> bool:
        self._skip()
        if self._text.startswith(sign, self._at):
            self._at += len(sign)
            return True
        return False

    def _value(self, depth: int) -> HeaderValue:
        if depth > _DEEPEST:
            raise FormatError(f"values nest at most {_DEEPEST} deep")
        if self._takes('"'):
            return HeaderValue(schemas.STRING, self._quoted())
        if self._takes("["):
            return self._array(depth)
        if self._takes("{"):
            return self._map(depth)
        return self._token()

    def _token(self) -> HeaderValue:
        self._skip()
        match = re.compile(r"[^,\[\]{}\"]+").match(self._text, self._at)
        word = match[0] if match else ""
        for text in (word.strip(), word.partition(":")[0].strip()):
            known = {"null": HeaderValue(None, None)} | {
                name: HeaderValue(schemas.BOOLEAN, name == "true") for name in ("true", "false")
            }
            found = known.get(text) or _single(text)
            if found:
                self._at += word.index(text) + len(text)
                return found
        raise FormatError("a text in an array or a map is in quotation marks")

    def _quoted(self) -> str:
        match = re.compile(r'((?:[^"\\]|\\.)*)"', re.DOTALL).match(self._text, self._at)
        if not match:
            raise FormatError("a quotation mark is missing")
        self._at = match.end()
        return re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)

    def _array(self, depth: int) -> HeaderValue:
        items: list[HeaderValue] = []
        while not self._takes("]"):
            if items and not self._takes(","):
                raise FormatError("elements of an array have a comma between them")
            if items and self._takes("]"):
                break
            items.append(self._value(depth + 1))
        if len({each.value is None for each in items}) > 1:
            raise FormatError("nulls and other values are in one array")
        common = _common([each.schema for each in items])
        schema = SchemaBuilder.array(common).build() if common else None
        return HeaderValue(schema, [_in_type(common, each.value) for each in items])

    def _map(self, depth: int) -> HeaderValue:
        pairs: list[tuple[HeaderValue, HeaderValue]] = []
        if not self._takes("}"):
            while True:
                key = self._value(depth + 1)
                if key.value is None or isinstance(key.value, (list, dict)):
                    raise FormatError("a key of a map is a single value")
                if not self._takes(":"):
                    raise FormatError("a key of a map has a colon after it")
                pairs.append((key, self._value(depth + 1)))
                if self._takes("}"):
                    break
                if not self._takes(","):
                    raise FormatError("entries of a map have a comma between them")
        keys = _common([key.schema for key, _ in pairs])
        values = _common([each.schema for _, each in pairs if each.value is not None])
        schema = SchemaBuilder.map(keys, values).build() if keys and values else None
        return HeaderValue(schema, {key.value: each.value for key, each in pairs})


def _in_type(schema: Schema | None, value: Any) -> Any:
    """Return a number as the type that all elements have."""
    is_real = schema is not None and schema.type in (Type.FLOAT32, Type.FLOAT64)
    return float(value) if is_real and value is not None else value


def _common(given: Sequence[Schema | None]) -> Schema | None:
    """Return the schema that all elements have, or the widest of numbers; None where there is none."""
    if not given or None in given:
        return None
    first = given[0]
    if all(each == first for each in given):
        return first
    types = [each.type for each in given if each and each.name is None]
    if len(types) < len(given) or not all(each in _WIDER for each in types):
        return None
    return Schema(max(types, key=_WIDER.index))
