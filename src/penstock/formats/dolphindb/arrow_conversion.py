"""Arrow arrays of any type in the types that DolphinDB has: every value is kept, or it is an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.arrow.arrow_objects import IpType
from penstock.formats.dolphindb import choosing, fixed
from penstock.formats.dolphindb.containers import AnyVector
from penstock.formats.dolphindb.dolphindb_types import BY_NAME, FIXED_KINDS, TYPES, Type, WireType
from penstock.formats.dolphindb.packing import pack

BY_ARROW = {each.arrow: each for each in TYPES if each.arrow is not None}
# Arrow's types that DolphinDB lacks, and the type of Arrow that holds their values.
_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.time64("us"): pa.time64("ns"),
    pa.timestamp("us"): pa.timestamp("ns"),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def type_of(array: pa.Array) -> Type:
    """Return the type of an array that `to_vector` made: for a list, that of its items."""
    if pa.types.is_list(array.type):
        return type_of(array.values)
    if pa.types.is_decimal(array.type):
        return choosing.decimal_type(array.type.precision, array.type.scale)
    return BY_ARROW[array.type]


def known(array: pa.Array) -> pa.Array | AnyVector:
    """Return an Arrow array in a type that DolphinDB has; every value is kept, or it is an error."""
    type_ = array.type
    if isinstance(type_, pa.ExtensionType) and not isinstance(type_, WireType | IpType):
        return known(array.storage)
    if type_ in BY_ARROW:
        return array
    for is_kind, convert in _CONVERSIONS:
        if is_kind(type_):
            return convert(array)
    if type_ not in _WIDER:
        raise FormatError(f"DolphinDB has no type for Arrow's {type_}{_advice(type_)}")
    return _cast(array, _WIDER[type_])


def packed(type_: Type, values: Sequence[Any]) -> pa.Array:
    """Return scalars of one fixed-width type as an array of it."""
    return fixed.to_arrow(type_, b"".join(pack(type_, each) for each in values))


def has_type(vector: pa.Array | AnyVector, kinds: frozenset[str]) -> bool:
    """Return whether a vector has scalars of these kinds."""
    if isinstance(vector, AnyVector) or pa.types.is_list(vector.type):
        return False
    return type_of(vector).kind in kinds


def rows_of(array: pa.Array) -> AnyVector:
    """Return the rows of a list array one by one."""
    return AnyVector(each.values for each in array)


def _known_decimal(array: pa.Array) -> pa.Array:
    type_ = array.type
    digits = choosing.decimal_type(type_.precision, max(type_.scale, 0)).digits
    return _cast(array, pa.decimal128(digits, max(type_.scale, 0)))


def _known_dictionary(array: pa.Array) -> pa.Array | AnyVector:
    values = array.type.value_type
    if values in (pa.string(), pa.large_string(), pa.string_view()):
        return _cast(array, pa.dictionary(pa.int32(), pa.string()))
    return known(_cast(array, values))


def _known_list(array: pa.Array) -> pa.Array | AnyVector:
    flat = known(array.flatten())
    if not has_type(flat, FIXED_KINDS):
        return rows_of(array)
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("<i4")
    return pa.ListArray.from_arrays(pa.array(offsets), flat)


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    try:
        return array.cast(wanted)
    except pa.ArrowException as error:
        raise FormatError(f"DolphinDB cannot hold every value of {array.type}: {error}") from error


def _advice(type_: pa.DataType) -> str:
    if pa.types.is_timestamp(type_):
        return ": its times have no zone, give the local time"
    if pa.types.is_duration(type_):
        return ": give numbers, or Duration(count, unit)"
    return ""


_CONVERSIONS: list[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array | AnyVector]]
] = [
    (pa.types.is_decimal, _known_decimal),
    (pa.types.is_dictionary, _known_dictionary),
    (pa.types.is_list, _known_list),
    (pa.types.is_large_list, _known_list),
    (pa.types.is_fixed_size_list, _known_list),
    (pa.types.is_fixed_size_binary, lambda array: _cast(array, pa.binary())),
    (
        lambda type_: isinstance(type_, IpType),
        lambda array: packed(BY_NAME["IPADDR"], array.to_pylist()),
    ),
]
