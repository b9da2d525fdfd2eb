"""The fast half of the JSON kernel: typed records, column by column, into Arrow arrays.

A column is converted in bulk, and refused as a whole when one value does not fit: the reference decoder
then finds out which. Values that are accepted here are accepted there, with equal results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.arrow_kernel import arrow_field, arrow_type
from penstock.decode.kernels.bulk_text import (
    Bulk,
    bulk_date,
    bulk_decimal,
    bulk_local_time,
    bulk_timestamp,
)
from penstock.decode.kernels.json.strict import INTEGER_BITS
from penstock.decode.kernels.text_kernel import read_base64
from penstock.errors import ConfigError
from penstock.pipeline.columns import Array, Decimal, Field, JsonText, Map, Struct, Type

Get = Callable[[Sequence[Any]], Sequence[Any]]
Build = Callable[[Sequence[Any]], pa.Array]
# Everything that pyarrow and our own checks raise for a value that does not fit.
UNFIT = (ValueError, TypeError, OverflowError)
_UNREADABLE = re.compile(r'["\\\x00-\x1f]')
_PLAIN = {"boolean": bool, "float": float, "double": float}


def _wire_type(type_: Type) -> Any:
    """Return the type that msgspec checks while it parses; text that needs more checks is a string."""
    if isinstance(type_, Struct):
        return record_class(type_)
    if isinstance(type_, Array):
        return list[_nullable(type_.element)]  # type: ignore[misc]
    if isinstance(type_, Map):
        return dict[str, _nullable(type_.value)]  # type: ignore[misc]
    if isinstance(type_, Decimal | JsonText):
        return msgspec.Raw if isinstance(type_, JsonText) else Any
    if type_.name in INTEGER_BITS:
        limit = 2 ** (INTEGER_BITS[type_.name] - 1)
        return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
    return _PLAIN.get(type_.name, str)


def record_class(struct: Struct, *, closed: bool = False) -> type[msgspec.Struct]:
    """Create the class that records of a struct are parsed into; fields are f0, f1, ...

    `closed` refuses records with other fields.
    """
    fields = [
        (f"f{place}", _wire_type(field.type))
        if field.required
        else (f"f{place}", _nullable(field.type), None)
        for place, field in enumerate(struct.fields)
    ]
    names = {f"f{place}": field.name for place, field in enumerate(struct.fields)}
    for name in filter(_UNREADABLE.search, names.values()):
        raise ConfigError(
            f"the name {name!r} cannot be a field of JSON here: it has a quotation mark, "
            "a backslash or a control character; rename it where it is produced, or use a parser"
        )
    return msgspec.defstruct(
        "Record", fields, rename=names, gc=False, kw_only=True, forbid_unknown_fields=closed
    )


def _nullable(type_: Type) -> Any:
    wire = _wire_type(type_)
    return wire if wire in (Any, msgspec.Raw) else wire | None


def columns_of(struct: Struct) -> list[tuple[Get, Build]]:
    """Return, for each field, how to get its values out of records and how to build their array."""
    return [(_values_of(place), _field_builder(field)) for place, field in enumerate(struct.fields)]


def _values_of(place: int) -> Get:
    # Written out, the attribute's name is part of the code, and the interpreter reads it twice
    # as fast as attrgetter does.
    values: Get = eval(f"lambda records: [record.f{place:d} for record in records]")  # noqa: S307
    return values


def _field_builder(field: Field) -> Build:
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
    """Return the function from values of a type to their Arrow array."""
    if isinstance(type_, Struct):
        return _struct(type_)
    if isinstance(type_, Array):
        return _array(type_)
    if isinstance(type_, Map):
        return _map(type_)
    if isinstance(type_, Decimal):
        return _decimal(type_)
    if isinstance(type_, JsonText):
        return _json_text
    special = {
        "float": _float,
        "binary": _binary,
        "date": _from_text(bulk_date),
        "timestamp": _from_text(bulk_timestamp),
        "timestamp_ntz": _from_text(bulk_local_time),
    }
    target = arrow_type(type_)
    return special.get(type_.name) or (lambda values: pa.array(values, target))


def _float(values: Sequence[Any]) -> pa.Array:
    array = pa.array(values, pa.float32())
    if pc.all(pc.is_finite(array)).as_py() is False:
        raise ValueError("a number is too large for float")
    return array


def _binary(values: Sequence[Any]) -> pa.Array:
    decoded = [None if value is None else read_base64(value) for value in values]
    return pa.array(decoded, pa.binary())


def _json_text(values: Sequence[Any]) -> pa.Array:
    texts = [b"null" if value is None else bytes(value) for value in values]
    return pa.array([None if text == b"null" else text for text in texts], pa.string())


def _from_text(convert: Bulk) -> Build:
    return lambda values: convert(pa.array(values, pa.string()))


def _decimal(type_: Decimal) -> Build:
    convert = bulk_decimal(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        return convert(
            pa.array([None if value is None else str(value) for value in values], pa.string())
        )

    return build


def _array(type_: Array) -> Build:
    inner, target = builder(type_.element), arrow_type(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        offsets, present = _offsets(values)
        elements = list(chain.from_iterable(present))
        return pa.ListArray.from_arrays(offsets, inner(elements), type=target)

    return build


def _map(type_: Map) -> Build:
    inner, target = builder(type_.value), arrow_type(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        offsets, present = _offsets(values)
        keys = pa.array(list(chain.from_iterable(present)), pa.string())
        items = inner(list(chain.from_iterable(map(dict.values, present))))
        return pa.MapArray.from_arrays(offsets, keys, items, type=target)

    return build


def _present(values: Sequence[Any]) -> Sequence[Any]:
    return [value for value in values if value is not None]


def _offsets(values: Sequence[Any]) -> tuple[pa.Array, Sequence[Any]]:
    """Return where each value starts among the elements, null for a null; and the values themselves."""
    try:
        return _starts(values), values
    except TypeError:  # None has no length; to look for it first would be one more pass
        present = _present(values)
    following = iter(_starts(present).to_pylist())
    places = [None if value is None else next(following) for value in values]
    return pa.array([*places, next(following)], pa.int32()), present


def _starts(values: Sequence[Any]) -> pa.Array:
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    return pa.array(np.concatenate(([0], ends))).cast(pa.int32())


def _struct(type_: Struct) -> Build:
    fields = [arrow_field(field) for field in type_.fields]
    columns = columns_of(type_)

    def build(values: Sequence[Any]) -> pa.Array:
        try:
            first = columns[0][0](values)
        except AttributeError:  # None has no fields; to look for it first would be one more pass
            return _with_nulls(build, values)
        children = [columns[0][1](first), *(make(get(values)) for get, make in columns[1:])]
        return pa.StructArray.from_arrays(children, fields=fields)

    return build


def _with_nulls(build: Build, values: Sequence[Any]) -> pa.Array:
    following = count()
    places = [None if value is None else next(following) for value in values]
    return build(_present(values)).take(pa.array(places, pa.int32()))
