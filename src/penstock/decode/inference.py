"""Infer the columns of JSON records from a sample: a schema with which every sampled record decodes.

The JSON decode is strict: a text is not a number. A field with values of different kinds has therefore no
type; it is left out, with the reason, and the decode's `rest` column keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from penstock.decode.kernels.json.strict import read_document
from penstock.decode.kernels.outcome import MisfitError
from penstock.decode.kernels.text_kernel import read_date, read_instant
from penstock.pipeline.columns import Array, Decimal, Field, Map, Scalar, Struct, Type

_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
# An object is a map when its names are many, and far more than one object has.
_MANY_NAMES, _TIMES_MORE = 20, 3
# DDL nests 32 types at most.
_MAX_DEPTH = 12
_QUOTES = frozenset('"\\')
# What a decimal holds.
_MOST_DIGITS = 38
_DOUBLE, _TIMESTAMP, _WHOLE = Scalar("double"), Scalar("timestamp"), Decimal(_MOST_DIGITS, 0)
_SCALARS: dict[frozenset[str], Type] = {
    frozenset({"boolean"}): Scalar("boolean"),
    frozenset({"integer"}): Scalar("bigint"),
    frozenset({"whole"}): _WHOLE,
    frozenset({"integer", "whole"}): _WHOLE,
    frozenset({"number"}): _DOUBLE,
    frozenset({"integer", "number"}): _DOUBLE,
    frozenset({"whole", "number"}): _DOUBLE,
    frozenset({"integer", "whole", "number"}): _DOUBLE,
    frozenset({"date"}): Scalar("date"),
    frozenset({"timestamp"}): _TIMESTAMP,
    frozenset({"date", "timestamp"}): _TIMESTAMP,
}
_TEXTS = {"text", "date", "timestamp"}


@dataclass
class Observed:
    """The kinds of values that one field, or the elements of one array, had in the sample."""

    kinds: set[str] = field(default_factory=set)
    objects: int = 0
    members: int = 0
    fields: dict[str, Observed] = field(default_factory=dict)
    element: Observed | None = None

    def add(self, raw: bytes) -> None:
        """Take one more value into account."""
        kind = _kind(raw)
        if kind != "null":
            self.kinds.add(kind)
        if kind == "array":
            self.element = self.element or Observed()
            for item in _array(raw):
                self.element.add(bytes(item))
        elif kind == "object":
            self.add_object(raw)

    def add_object(self, raw: bytes) -> None:
        """Take the fields of one object into account."""
        given = _object(raw)
        self.objects += 1
        self.members += len(given)
        for name, value in given.items():
            self.fields.setdefault(name, Observed()).add(bytes(value))

    def merge(self, other: Observed) -> None:
        """Take all values of another field into account."""
        self.kinds |= other.kinds
        self.objects += other.objects
        self.members += other.members
        for name, observed in other.fields.items():
            self.fields.setdefault(name, Observed()).merge(observed)
        if other.element:
            self.element = self.element or Observed()
            self.element.merge(other.element)


@dataclass(frozen=True)
class Inferred:
    """The columns, remarks by the path of a field, and how many records are not JSON objects."""

    columns: tuple[Field, ...]
    remarks: dict[str, str]
    left_out: tuple[str, ...]
    records: int
    failed: int


def infer(records: Iterable[bytes | None]) -> Inferred:
    """Return the columns of a sample of records.

    >>> found = infer([b'{"id": 1, "at": "2024-01-01"}', b'{"id": 1.5, "x": null}', b"no JSON"])
    >>> [column.ddl() for column in found.columns], found.remarks, found.failed
    (['id double', 'at date', 'x string'], {'x': 'only null in the sample'}, 1)
    """
    top, count, failed = Observed(), 0, 0
    for record in records:
        count += 1
        try:
            top.add_object(read_document(record))
        except (MisfitError, msgspec.MsgspecError):
            failed += 1
    typing = _Typing()
    columns = typing.fields(top, "", 0)
    left_out = tuple(name for name in top.fields if name not in {one.name for one in columns})
    return Inferred(columns, typing.remarks, left_out, count, failed)


class _Typing:
    """Decides types, and collects a remark for each field that needs one."""

    def __init__(self) -> None:
        self.remarks: dict[str, str] = {}

    def fields(self, observed: Observed, path: str, depth: int) -> tuple[Field, ...]:
        """Return the fields of a struct, without those that have no type."""
        fields: dict[str, Field] = {}
        for name, values in observed.fields.items():
            where = f"{path}{name}"
            if not name or not name.isprintable() or _QUOTES & set(name):
                self.remarks[where] = "left out: the name cannot be that of a column"
            elif name.lower() in fields:
                self.remarks[where] = "left out: another name differs in upper and lower case only"
            elif type_ := self.type(values, where, depth + 1):
                fields[name.lower()] = Field(name, type_)
        return tuple(fields.values())

    def type(self, observed: Observed, where: str, depth: int) -> Type | None:
        """Return the type that all observed values fit; None, with a remark, where there is none."""
        kinds = observed.kinds
        if not kinds:
            self.remarks[where] = "only null in the sample"
            return Scalar("string")
        if scalar := _SCALARS.get(frozenset(kinds)):
            return scalar
        if kinds <= _TEXTS:
            return Scalar("string")
        if depth <= _MAX_DEPTH and kinds == {"array"} and observed.element:
            element = self._inner(observed.element, f"{where}[]", depth)
            return element and Array(element)
        if depth <= _MAX_DEPTH and kinds == {"object"}:
            return self._object(observed, where, depth)
        reason = f"values of several kinds ({', '.join(sorted(kinds))})"
        if "huge" in kinds:
            reason = "a number too large for double"
        elif len(kinds) == 1:
            reason = "nested too deep"
        self.remarks[where] = f"left out: {reason}"
        return None

    def _inner(self, observed: Observed, where: str, depth: int) -> Type | None:
        if not observed.kinds:
            self.remarks[where] = "no element in the sample has a value"
            return Scalar("string")
        return self.type(observed, where, depth + 1)

    def _object(self, observed: Observed, where: str, depth: int) -> Type | None:
        if _has_varying_names(observed) and (as_map := self._map(observed, where, depth)):
            return as_map
        if not observed.fields:
            self.remarks[where] = "only empty objects in the sample"
            return Map(Scalar("string"))
        fields = self.fields(observed, f"{where}.", depth)
        return Struct(fields) if fields else self._map(observed, where, depth)

    def _map(self, observed: Observed, where: str, depth: int) -> Type | None:
        every = Observed()
        for values in observed.fields.values():
            every.merge(values)
        trial = _Typing()
        value = trial.type(every, f"{where}{{}}", depth + 1)
        if value:
            self.remarks.update(trial.remarks)
        return value and Map(value)


def _has_varying_names(observed: Observed) -> bool:
    names = len(observed.fields)
    return names > _MANY_NAMES and names * observed.objects > _TIMES_MORE * observed.members


def _kind(raw: bytes) -> str:
    simple = {b"{": "object", b"[": "array", b"t": "boolean", b"f": "boolean", b"n": "null"}
    first = raw[:1]
    if first == b'"':
        return _text_kind(_text(raw))
    return simple.get(first) or _number_kind(raw)


def _number_kind(raw: bytes) -> str:
    """Return `integer` for those of 64 bits, `whole` for larger ones: as a double they lose digits."""
    digits = raw.removeprefix(b"-")
    if digits.isdigit() and len(digits) <= _MOST_DIGITS:
        return "integer" if -(2**63) <= int(raw) < 2**63 else "whole"
    return "number" if math.isfinite(float(raw)) else "huge"


def _text_kind(text: str) -> str:
    readers: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("date", read_date),
        ("timestamp", read_instant),
    )
    for kind, read in readers:
        try:
            read(text)
        except ValueError:
            continue
        return kind
    return "text"
