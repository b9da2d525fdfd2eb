"""Arrow columns of any writer in the declared types: every value exactly, or an error that names why.

Arrow's own casts accept more: numbers become text, doubles lose digits, times lose their zone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.arrow.arrow_size import python_size
from penstock.formats.limits import check_size
from penstock.pipeline.spark_years import days_in_years, moments_in_years

_Cast = Callable[[pa.Array, pa.DataType], pa.Array]
_Nested = Callable[[pa.Array, pa.DataType, bool], pa.Array]
_Test = Callable[[pa.DataType], bool]
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_WIDEST = pa.decimal256(76, 0)


class InexactError(ValueError):
    """A value does not fit the declared type exactly; `where` is the path inside the column."""

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(why)
        self.where = where


def exact_cast(array: pa.Array, wanted: pa.DataType, *, rounds: bool = False) -> pa.Array:
    """Return the same values in another type, or raise `InexactError`.

    With `rounds` a double may lose digits in a float of 32 bits, but not become infinite.

    >>> exact_cast(pa.array([1, None]), pa.float64()).to_pylist()
    [1.0, None]
    >>> exact_cast(pa.array([0.1]), pa.float32())
    Traceback (most recent call last):
    penstock.pipeline.exact_cast.InexactError: a value of double does not fit float exactly
    """
    given = _plain(array, wanted)
    if pa.types.is_null(given.type):
        return pa.nulls(len(given), wanted)
    for is_source, is_target, nested in _NESTED:
        if is_source(given.type) and is_target(wanted):
            try:
                return nested(given, wanted, rounds)
            except (pa.ArrowException, OverflowError) as error:
                raise InexactError(str(error).split("\n")[0]) from None
    for is_source, is_target, cast in _CASTS:
        if is_source(given.type) and is_target(wanted):
            try:
                return (
                    _rounded(given, wanted) if rounds and cast is _narrowed else cast(given, wanted)
                )
            except (pa.ArrowException, OverflowError) as error:
                raise InexactError(str(error).split("\n")[0]) from None
    raise InexactError(f"{given.type} is not converted to {wanted}")


def table_cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return a column of a table that a function made, in the declared type, or raise `InexactError`.

    What Python values of the type may be, it may have, too: numbers are rounded to 32 bits, times without
    a time of day are dates, bytes in UTF-8 are texts.
    """
    if pa.types.is_timestamp(array.type) and pa.types.is_date(wanted):
        local = array if array.type.tz is None else pc.local_timestamp(array)
        days = local.cast(wanted)
        if pc.all(pc.equal(days.cast(local.type), local)).as_py() is False:
            raise InexactError("a value has a time of day")
        return days
    if pa.types.is_binary(array.type) and pa.types.is_string(wanted):
        try:
            return array.cast(wanted)
        except pa.ArrowInvalid as error:
            raise InexactError(str(error)) from None
    return exact_cast(array, wanted, rounds=True)


def _plain(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the values without the wrapping of dictionaries, runs and extension types."""
    type_ = array.type
    if _is_shared(type_):
        # Many items may refer to one long text: this counts them before they are copied.
        check_size(python_size(array), f"a column of {type_}")
    if isinstance(type_, pa.BaseExtensionType):
        return _texts(array) if wanted == pa.string() else _plain(array.storage, wanted)
    if pa.types.is_dictionary(type_):
        return _plain(array.dictionary_decode(), wanted)
    if pa.types.is_run_end_encoded(type_):
        return _plain(pc.run_end_decode(array), wanted)
    return array


def _is_shared(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_dictionary(type_)
        or pa.types.is_run_end_encoded(type_)
        or pa.types.is_list_view(type_)
        or pa.types.is_large_list_view(type_)
        or isinstance(type_, pa.BaseExtensionType)
        or type_ in (pa.string_view(), pa.binary_view())
    )


def _texts(array: pa.Array) -> pa.Array:
    """Return the text form of values that only an extension type has: UUIDs, addresses, durations."""
    try:
        items = array.to_pylist()
    except (ValueError, OverflowError, KeyError) as error:
        raise InexactError(str(error)) from None
    return pa.array([None if item is None else str(item) for item in items], pa.string())


def _safe(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    return array.cast(wanted)


def _narrowed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    narrow = array.cast(wanted)
    same = pc.or_(pc.equal(narrow.cast(array.type), array), pc.is_nan(array))
    if pc.all(same).as_py() is False:
        raise InexactError(f"a value of {array.type} does not fit {wanted} exactly")
    return narrow


def _rounded(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    narrow = array.cast(wanted)
    if pc.any(pc.and_not(pc.is_inf(narrow), pc.is_inf(array))).as_py():
        raise InexactError(f"a value of {array.type} is too large for {wanted}")
    return narrow


def _to_decimal(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    wide = array if pa.types.is_decimal(array.type) else array.cast(_WIDEST)
    return wide.cast(wanted)


def _date(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    return _in_years(days_in_years, array.cast(pa.date32())).cast(wanted)


def _timestamp(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type.tz is not None and wanted.tz is None:
        raise InexactError(
            "a timestamp_ntz has no zone, and these times have one: declare timestamp"
        )
    return _in_years(moments_in_years, array.cast(wanted))


def _in_years(check: Callable[[pa.Array], pa.Array], array: pa.Array) -> pa.Array:
    try:
        return check(array)
    except ValueError as error:
        raise InexactError(str(error)) from None


def _list(array: pa.Array, wanted: pa.DataType, rounds: bool) -> pa.Array:
    items = exact_cast(array.flatten(), wanted.value_type, rounds=rounds)
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype("i4")
    nulls = np.append(array.is_null().to_numpy(zero_copy_only=False), False)
    return pa.ListArray.from_arrays(pa.array(ends, mask=nulls), items, type=wanted)


def _map(array: pa.Array, wanted: pa.DataType, rounds: bool) -> pa.Array:
    # As a list the entries are cut out, whatever the array's offsets are.
    pairs = array.cast(
        pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)]))
    )
    flat = pairs.flatten()
    keys = exact_cast(flat.field("key"), wanted.key_type)
    items = exact_cast(flat.field("value"), wanted.item_type, rounds=rounds)
    lengths = pairs.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype("i4")
    nulls = np.append(array.is_null().to_numpy(zero_copy_only=False), False)
    return pa.MapArray.from_arrays(pa.array(ends, mask=nulls), keys, items, type=wanted)


def _struct(array: pa.Array, wanted: pa.DataType, rounds: bool) -> pa.Array:
    given = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    if len(given) != array.type.num_fields:
        raise InexactError("two fields have one name")
    fields = [wanted.field(place) for place in range(wanted.num_fields)]
    if unknown := set(given) - {field.name for field in fields}:
        raise InexactError("the field is not declared", f".{min(unknown)}")
    nulls = array.is_null()
    columns = [_field(given.get(field.name), field, nulls, rounds) for field in fields]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=nulls)


def _field(array: pa.Array | None, field: pa.Field, nulls: pa.Array, rounds: bool) -> pa.Array:
    try:
        column = (
            pa.nulls(len(nulls), field.type)
            if array is None
            else exact_cast(array, field.type, rounds=rounds)
        )
    except InexactError as error:
        raise InexactError(str(error), f".{field.name}{error.where}") from None
    if not field.nullable and pc.any(pc.and_not(column.is_null(), nulls)).as_py():
        raise InexactError("found null, declared not null", f".{field.name}")
    return column


def _is(*types: pa.DataType) -> _Test:
    return lambda type_: type_ in types


def is_list(type_: pa.DataType) -> bool:
    """Return whether a type is one of lists, of whatever form."""
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
        or pa.types.is_list_view(type_)
        or pa.types.is_large_list_view(type_)
    )


def _is_bytes(type_: pa.DataType) -> bool:
    return type_ in _BYTES or bool(pa.types.is_fixed_size_binary(type_))


def _is_whole(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_))


_CASTS: list[tuple[_Test, _Test, _Cast]] = [
    (pa.types.is_boolean, pa.types.is_boolean, _safe),
    (_is_whole, pa.types.is_integer, _safe),
    (_is_whole, pa.types.is_decimal, _to_decimal),
    (pa.types.is_integer, pa.types.is_floating, _safe),
    (pa.types.is_floating, pa.types.is_integer, _safe),
    (pa.types.is_floating, pa.types.is_floating, _narrowed),
    (_is(*_TEXTS), _is(pa.string()), _safe),
    (pa.types.is_time, _is(pa.string()), _safe),
    (_is_bytes, _is(pa.binary()), _safe),
    (pa.types.is_date, _is(pa.date32()), _date),
    (pa.types.is_date, pa.types.is_timestamp, _date),
    (pa.types.is_timestamp, pa.types.is_timestamp, _timestamp),
    (pa.types.is_duration, pa.types.is_duration, _safe),
]
_NESTED: list[tuple[_Test, _Test, _Nested]] = [
    (is_list, pa.types.is_list, _list),
    (pa.types.is_map, pa.types.is_map, _map),
    (pa.types.is_struct, pa.types.is_struct, _struct),
]
