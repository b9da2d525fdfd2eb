"""The reference decoder: what one JSON record means under a declared schema, with error messages.

It is slow and plain on purpose. The fast path may accept only what this accepts, with equal values.
Values stay raw text (`Raw`) until their type is known, so no digit of a number is lost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.decode.kernels import text_kernel as texts
from penstock.decode.kernels.outcome import MisfitError
from penstock.errors import FormatError
from penstock.formats.json import check_json
from penstock.pipeline.columns import Array, Decimal, JsonText, Map, Scalar, Struct, Type
from penstock.pipeline.schema import Schema

Reader = Callable[[bytes, str], Any]
# A fixed bound, so that no parser's stack decides it from case to case.
MAX_DEPTH = 256
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TEXTS: dict[str, Callable[[str], Any]] = {
    "date": texts.read_date,
    "timestamp": texts.read_instant,
    "timestamp_ntz": texts.read_local_time,
    "binary": texts.read_base64,
    "string": str,
}
_KINDS = {b'"': "text", b"{": "object", b"[": "array", b"t": "true", b"f": "false", b"n": "null"}
_LARGEST_FLOAT = (2 - 2**-24) * 2.0**127
_SHOWN = 40
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
_anything = msgspec.json.Decoder(msgspec.Raw).decode


class ReferenceDecoder:
    """Decodes one record at a time.

    >>> ReferenceDecoder(Schema.parse("price decimal(6,2)")).decode(b'{"price": 1.5}')
    {'price': Decimal('1.50')}
    """

    def __init__(self, schema: Schema, *, closed: bool = False) -> None:
        self._read = _struct_reader(schema.struct)
        self._closed = frozenset(schema.names) if closed else None
        self._cells = [_struct_reader(Struct((field,))) for field in schema.fields]

    def decode(self, record: bytes | None) -> dict[str, Any]:
        """Return the row of one record, or raise a `MisfitError`: what is wrong, and where."""
        document = read_document(record)
        if self._closed is not None:
            _refuse_others(document, self._closed)
        row: dict[str, Any] = self._read(document, "")
        return row

    def cell(self, record: bytes | None, place: int) -> Any:
        """Return the value of one column only."""
        (value,) = self._cells[place](read_document(record), "").values()
        return value


def _refuse_others(document: bytes, allowed: frozenset[str]) -> None:
    other = next((name for name in _object(document) if name not in allowed), None)
    if other is not None:
        raise MisfitError(
            "UnknownField",
            f"the member {_cut(other)!r} is not expected next to {', '.join(sorted(allowed))}",
        )


def read_document(record: bytes | None) -> bytes:
    """Return the text of a record that is one JSON object within the limits, or raise `MisfitError`."""
    if not record:
        given = "null" if record is None else "empty"
        raise MisfitError("EmptyValue", f"the value is {given}; a JSON object is expected")
    refuse_large(record)
    refuse_deep(record)
    document = _parse(record)
    if _kind(document) != "object":
        raise MisfitError("WrongType", f"found {shown_json(document)}; a JSON object is expected")
    return document


def refuse_deep(record: bytes) -> None:
    """Raise when brackets nest deeper than `MAX_DEPTH`."""
    if len(record) <= MAX_DEPTH or record.count(b"[") + record.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for mark in _BRACKETS.findall(_STRINGS.sub(b"", record)):
        depth += 1 if mark in b"[{" else -1
        if depth > MAX_DEPTH:
            raise _too_deep()


def refuse_large(record: bytes) -> None:
    """Raise when the objects of a record would take more memory than one value may."""
    try:
        check_json(record)
    except FormatError as error:
        raise MisfitError("TooLarge", str(error)) from None


def _too_deep() -> MisfitError:
    return MisfitError("TooDeep", f"the JSON nests deeper than {MAX_DEPTH} levels")


def _parse(record: bytes) -> bytes:
    try:
        str(record, "utf-8")
        return bytes(_anything(record))
    except UnicodeDecodeError as error:
        raise MisfitError("NotUtf8", f"not UTF-8: byte {error.start}, {error.reason}") from None
    except RecursionError:
        raise _too_deep() from None
    except msgspec.DecodeError as error:
        raise MisfitError("MalformedJson", f"not JSON: {error}") from None


def _kind(raw: bytes) -> str:
    return _KINDS.get(raw[:1], "number")


def _reader(type_: Type) -> Reader:
    if isinstance(type_, Struct):
        return _struct_reader(type_)
    if isinstance(type_, Array):
        return _array_reader(type_)
    if isinstance(type_, Map):
        return _map_reader(type_)
    if isinstance(type_, Decimal):
        return _decimal_reader(type_)
    if isinstance(type_, JsonText):
        return lambda raw, _path: raw.decode()
    return _scalar_reader(type_)


def _scalar_reader(type_: Scalar) -> Reader:
    if type_.name in INTEGER_BITS:
        return _integer_reader(type_)
    if type_.name in ("float", "double"):
        return _float_reader(type_)
    if type_.name in _TEXTS:
        return _text_reader(type_)
    return _boolean_reader(type_)


def _nullable_reader(type_: Type) -> Reader:
    read = _reader(type_)
    return lambda raw, path: None if raw == b"null" else read(raw, path)


def _boolean_reader(type_: Scalar) -> Reader:
    def read(raw: bytes, path: str) -> bool:
        if _kind(raw) not in ("true", "false"):
            raise _wrong_type(raw, path, type_)
        return raw == b"true"

    return read


def _integer_reader(type_: Scalar) -> Reader:
    limit = 2 ** (INTEGER_BITS[type_.name] - 1)

    def read(raw: bytes, path: str) -> int:
        if _kind(raw) != "number" or not raw.lstrip(b"-").isdigit():
            raise _wrong_type(raw, path, type_)
        # Python refuses to read thousands of digits; a number of twenty does not fit either.
        number = int(raw[:21])
        if not -limit <= number < limit:
            raise _out_of_range(raw, path, type_, f"its range is {-limit} to {limit - 1}")
        return number

    return read


def _float_reader(type_: Scalar) -> Reader:
    limit = _LARGEST_FLOAT if type_.name == "float" else math.inf

    def read(raw: bytes, path: str) -> float:
        if _kind(raw) != "number":
            raise _wrong_type(raw, path, type_)
        number = 0.0 if raw == b"-0" else float(raw)
        if abs(number) >= limit:
            raise _out_of_range(raw, path, type_, "the number is too large for it")
        return number

    return read


def _decimal_reader(type_: Decimal) -> Reader:
    def read(raw: bytes, path: str) -> Any:
        if _kind(raw) not in ("number", "text"):
            raise _wrong_type(raw, path, type_)
        digits = _text(raw) if _kind(raw) == "text" else raw.decode()
        try:
            return texts.read_decimal(digits, type_.precision, type_.scale)
        except ValueError as error:
            raise _out_of_range(raw, path, type_, str(error)) from None

    return read


def _text_reader(type_: Scalar) -> Reader:
    convert = _TEXTS[type_.name]

    def read(raw: bytes, path: str) -> Any:
        if _kind(raw) != "text":
            raise _wrong_type(raw, path, type_)
        try:
            return convert(_text(raw))
        except ValueError as error:
            raise _out_of_range(raw, path, type_, str(error)) from None

    return read


def _struct_reader(type_: Struct) -> Reader:
    readers = [(field, _nullable_reader(field.type)) for field in type_.fields]

    def read(raw: bytes, path: str) -> dict[str, Any]:
        if _kind(raw) != "object":
            raise _wrong_type(raw, path, type_)
        members = _object(raw)
        row = {}
        for field, inner in readers:
            where = f"{path}.{field.name}" if path else field.name
            value = bytes(members.get(field.name, b""))
            if field.required and value in (b"", b"null"):
                given = "null" if value else "nothing"
                declared = f"{_cut(field.type.ddl())} not null"
                raise MisfitError("MissingField", f"{where}: found {given}, declared {declared}")
            row[field.name] = inner(value or b"null", where)
        return row

    return read


def _array_reader(type_: Array) -> Reader:
    inner = _nullable_reader(type_.element)

    def read(raw: bytes, path: str) -> list[Any]:
        if _kind(raw) != "array":
            raise _wrong_type(raw, path, type_)
        return [inner(bytes(item), f"{path}[{place}]") for place, item in enumerate(_array(raw))]

    return read


def _map_reader(type_: Map) -> Reader:
    inner = _nullable_reader(type_.value)

    def read(raw: bytes, path: str) -> list[tuple[str, Any]]:
        if _kind(raw) != "object":
            raise _wrong_type(raw, path, type_)
        members = _object(raw).items()
        return [(key, inner(bytes(item), f"{path}[{_cut(key)!r}]")) for key, item in members]

    return read


def _wrong_type(raw: bytes, path: str, type_: Type) -> MisfitError:
    declared, hint = _cut(type_.ddl()), ""
    if _kind(raw) == "number" and declared in ("timestamp", "timestamp_ntz"):
        hint = (
            ": declare bigint (or double) and convert it with a SQL step, "
            "for example timestamp_millis(at)"
        )
    return MisfitError("WrongType", f"{path}: found {shown_json(raw)}, declared {declared}{hint}")


def _out_of_range(raw: bytes, path: str, type_: Type, why: str) -> MisfitError:
    message = f"{path}: found {shown_json(raw)}, declared {type_.ddl()}: {why}"
    return MisfitError("OutOfRange", message)


def shown_json(raw: bytes) -> str:
    """Return a short description of a JSON text, for messages."""
    kind = _kind(raw)
    if kind == "number":
        return f"the number {_cut(raw.decode())}"
    if kind == "text":
        return f"the text {_cut(_text(raw))!r}"
    return {"object": "an object", "array": "an array"}.get(kind, kind)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
