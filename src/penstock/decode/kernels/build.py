"""The fast half of the JSON kernel: typed records, column by column, into Arrow arrays.

A column is converted in bulk, and refused as a whole when one value does not fit: the arbiter then
finds out which. What is accepted here is accepted by the arbiter, with equal values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate, chain, count
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.arrow import arrow_field, arrow_type
from penstock.decode.kernels.strict import INTEGER_BITS
from penstock.decode.kernels.text import read_base64
from penstock.errors import ConfigError
from penstock.pipeline.columns import Array, Decimal, Field, Map, Scalar, Struct, Type

Get = Callable[[Sequence[Any]], Sequence[Any]]
Build = Callable[[Sequence[Any]], pa.Array]
# Everything that pyarrow and our own checks raise for a value that does not fit.
UNFIT = (ValueError, TypeError, OverflowError)
_FIRST_DAY, _LAST_DAY = -719162, 2932896
_DAY = 86_400_000_000
_UTC, _LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
_UNREADABLE = re.compile(r'["\\\x00-\x1f]')
_ZONED = re.compile(r"[T ].*(Z|[+-][0-9:]+)$")
_PLAIN = {"boolean": bool, "float": float, "double": float}


def wire_type(type_: Type) -> Any:
    """Give what msgspec checks while it parses; text that needs more is a string until then."""
    if isinstance(type_, Struct):
        return record_class(type_)
    if isinstance(type_, Array):
        return list[_nullable(type_.element)]  # type: ignore[misc]
    if isinstance(type_, Map):
        return dict[str, _nullable(type_.value)]  # type: ignore[misc]
    if isinstance(type_, Decimal):
        return Any
    if type_.name in INTEGER_BITS:
        limit = 2 ** (INTEGER_BITS[type_.name] - 1)
        return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
    return _PLAIN.get(type_.name, str)


def record_class(struct: Struct) -> type[msgspec.Struct]:
    """Make the class that records of a struct are parsed into; fields are f0, f1, ..."""
    fields = [_wire_field(f"f{place}", field) for place, field in enumerate(struct.fields)]
    names = {f"f{place}": field.name for place, field in enumerate(struct.fields)}
    for name in filter(_UNREADABLE.search, names.values()):
        raise ConfigError(
            f"the name {name!r} cannot be a field of JSON here: it has a quotation mark, "
            "a backslash or a control character; rename it where it is produced, or use a parser"
        )
    return msgspec.defstruct("Record", fields, rename=names, gc=False, kw_only=True)


def _wire_field(name: str, field: Field) -> Any:
    if field.required:
        return name, wire_type(field.type)
    return name, _nullable(field.type), None


def _nullable(type_: Type) -> Any:
    wire = wire_type(type_)
    return wire if wire is Any else wire | None


def columns_of(struct: Struct) -> list[tuple[Get, Build]]:
    """Give, per field, how to get its values out of records and how to build their array."""
    return [(_values_of(place), field_builder(field)) for place, field in enumerate(struct.fields)]


def _values_of(place: int) -> Get:
    # Written out, the attribute's name is part of the code, and the interpreter reads it twice
    # as fast as attrgetter does.
    values: Get = eval(f"lambda records: [record.f{place:d} for record in records]")  # noqa: S307
    return values


def field_builder(field: Field) -> Build:
    """Give the function from a field's values to its Arrow array."""
    build = builder(field.type)
    if not field.required:
        return build

    def required(values: Sequence[Any]) -> pa.Array:
        array = build(values)
        if array.null_count:
            raise ValueError("a required value is null")
        return array

    return required


def builder(type_: Type) -> Build:
    """Give the function from values of a type to their Arrow array."""
    if isinstance(type_, Struct):
        return _struct(type_)
    if isinstance(type_, Array):
        return _array(type_)
    if isinstance(type_, Map):
        return _map(type_)
    if isinstance(type_, Decimal):
        return _decimal(type_)
    special = {
        "float": _float,
        "binary": _binary,
        "date": _date,
        "timestamp": _timestamp,
        "timestamp_ntz": _timestamp_ntz,
    }
    return special.get(type_.name) or _plain(type_)


def _plain(type_: Scalar) -> Build:
    target = arrow_type(type_)
    return lambda values: pa.array(values, target)


def _float(values: Sequence[Any]) -> pa.Array:
    array = pa.array(values, pa.float32())
    if pc.all(pc.is_finite(array)).as_py() is False:
        raise ValueError("a number is too large for float")
    return array


def _binary(values: Sequence[Any]) -> pa.Array:
    decoded = [None if value is None else read_base64(value) for value in values]
    return pa.array(decoded, pa.binary())


def _date(values: Sequence[Any]) -> pa.Array:
    array = pa.array(values, pa.string()).cast(pa.date32())
    _need_between(array.view(pa.int32()), _FIRST_DAY, _LAST_DAY)
    return array


def _timestamp(values: Sequence[Any]) -> pa.Array:
    text = pa.array(values, pa.string())
    first = next(filter(None, values), "")
    try:
        array = text.cast(_UTC) if _ZONED.search(first) else text.cast(_LOCAL).cast(_UTC)
    except pa.ArrowInvalid:
        array = _mixed_timestamp(text)
    return _in_years(array)


def _mixed_timestamp(text: pa.Array) -> pa.Array:
    """Arrow casts either text with a zone or text without one; without one means UTC."""
    zoned = pc.match_substring_regex(text, _ZONED.pattern)
    if pc.all(zoned).as_py() or not pc.any(zoned).as_py():
        raise ValueError("a timestamp does not fit")
    nothing = pa.scalar(None, pa.string())
    instants = pc.if_else(zoned, text, nothing).cast(_UTC)
    return pc.coalesce(instants, pc.if_else(zoned, nothing, text).cast(_LOCAL).cast(_UTC))


def _timestamp_ntz(values: Sequence[Any]) -> pa.Array:
    return _in_years(pa.array(values, pa.string()).cast(_LOCAL))


def _in_years(array: pa.Array) -> pa.Array:
    _need_between(array.view(pa.int64()), _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1)
    return array


def _need_between(numbers: pa.Array, first: int, last: int) -> None:
    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and not first <= found["min"] <= found["max"] <= last:
        raise ValueError("years are 0001 to 9999")


def _decimal(type_: Decimal) -> Build:
    target = arrow_type(type_)
    # Wide enough that scaling a text of `longest` digits up cannot overflow unseen.
    width = 38 if 38 - type_.scale >= type_.precision + 2 else 76
    longest = width - type_.scale
    wide = (pa.decimal128 if width == 38 else pa.decimal256)(width, type_.scale)

    def build(values: Sequence[Any]) -> pa.Array:
        text = pa.array([None if value is None else str(value) for value in values], pa.string())
        if pc.any(pc.greater(pc.binary_length(text), longest)).as_py():
            raise ValueError("a decimal has many digits")
        if pc.any(pc.match_substring(text, "e", ignore_case=True)).as_py():
            raise ValueError("a decimal has an exponent")
        return text.cast(wide).cast(target)

    return build


def _array(type_: Array) -> Build:
    inner, target = builder(type_.element), arrow_type(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        present = _present(values)
        elements = list(chain.from_iterable(present))
        return pa.ListArray.from_arrays(_offsets(values, present), inner(elements), type=target)

    return build


def _map(type_: Map) -> Build:
    inner, target = builder(type_.value), arrow_type(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        present = _present(values)
        keys = pa.array(list(chain.from_iterable(present)), pa.string())
        items = inner(list(chain.from_iterable(found.values() for found in present)))
        return pa.MapArray.from_arrays(_offsets(values, present), keys, items, type=target)

    return build


def _present(values: Sequence[Any]) -> Sequence[Any]:
    return [value for value in values if value is not None]


def _offsets(values: Sequence[Any], present: Sequence[Any]) -> pa.Array:
    """Where each value starts among the elements; null where the value is null."""
    starts = list(accumulate(map(len, present), initial=0))
    if len(present) == len(values):
        return pa.array(starts, pa.int32())
    following = iter(starts)
    places = [None if value is None else next(following) for value in values]
    return pa.array([*places, starts[-1]], pa.int32())


def _struct(type_: Struct) -> Build:
    fields = [arrow_field(field) for field in type_.fields]
    columns = columns_of(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        present = _present(values)
        children = [make(get(present)) for get, make in columns]
        array = pa.StructArray.from_arrays(children, fields=fields)
        return array if len(present) == len(values) else array.take(_places(values))

    return build


def _places(values: Sequence[Any]) -> pa.Array:
    following = count()
    places = [None if value is None else next(following) for value in values]
    return pa.array(places, pa.int32())
