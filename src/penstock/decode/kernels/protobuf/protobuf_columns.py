"""Columns of parsed Protobuf messages: one function for each field, chosen once from its type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

import pyarrow as pa

from penstock.decode.kernels.arrow_kernel import arrow_type
from penstock.decode.kernels.outcome import MisfitError
from penstock.decode.kernels.protobuf.protobuf_known import duration_of, json_of, micros_of
from penstock.decode.kernels.protobuf.protobuf_types import Column, Value

Present = list[bool] | None
"""Which of the values are set; None where all are."""
Build = Callable[[Sequence[Any], Present], pa.Array]
Columns = Callable[[Sequence[Any]], list[pa.Array]]


def struct_columns(columns: Sequence[Column], path: str) -> Columns:
    """Return the function that makes the arrays of some columns from messages."""
    builders = [_column(column, f"{path}{column.name}") for column in columns]
    return lambda messages: [build(messages) for build in builders]


def _column(column: Column, path: str) -> Callable[[Sequence[Any]], pa.Array]:
    get, name = attrgetter(column.name), column.name
    build = _builder(column.value, path)

    type_ = arrow_type(column.declared.type)

    def always(messages: Sequence[Any]) -> pa.Array:
        return build(list(map(get, messages)), None)

    def where_set(messages: Sequence[Any]) -> pa.Array:
        present = [message.HasField(name) for message in messages]
        return build(list(map(get, messages)), present)

    def listed(messages: Sequence[Any]) -> pa.Array:
        return _list(list(map(get, messages)), build, type_)

    if column.repeated:
        return listed
    return where_set if column.field.has_presence else always


def _list(lists: Sequence[Any], build: Build, type_: pa.DataType) -> pa.Array:
    elements = list(chain.from_iterable(lists))
    return pa.ListArray.from_arrays(_offsets(map(len, lists)), build(elements, None), type=type_)


def _offsets(sizes: Iterable[int]) -> pa.Array:
    return pa.array(accumulate(sizes, initial=0), pa.int32())


def _builder(value: Value, path: str) -> Build:
    make = _BUILDERS.get(value.kind, _scalar)
    return make(value, path)


def _scalar(value: Value, _path: str) -> Build:
    type_ = arrow_type(value.type)
    return lambda values, present: pa.array(_masked(values, present), type_)


def _string(_value: Value, path: str) -> Build:
    def build(values: Sequence[Any], present: Present) -> pa.Array:
        try:
            return pa.array(_masked(values, present), pa.string())
        except pa.ArrowInvalid:
            raise _not_utf8(path) from None

    return build


def _not_utf8(path: str) -> MisfitError:
    # Protobuf checks the text of proto3 itself; text of proto2 that is not UTF-8 it returns as bytes.
    return MisfitError("NotUtf8", f"{path}: the text is not UTF-8")


def _masked(values: Iterable[Any], present: Present) -> list[Any]:
    if present is None:
        return list(values)
    return [each if given else None for each, given in zip(values, present, strict=True)]


def _enum(value: Value, _path: str) -> Build:
    names = value.names

    def build(values: Sequence[int], present: Present) -> pa.Array:
        texts = (names.get(number) or str(number) for number in values)
        return pa.array(_masked(texts, present), pa.string())

    return build


def _struct(value: Value, path: str) -> Build:
    columns = struct_columns(value.inner, f"{path}.")
    fields = list(arrow_type(value.type))

    def build(values: Sequence[Any], present: Present) -> pa.Array:
        return pa.StructArray.from_arrays(columns(values), fields=fields, mask=_mask(present))

    return build


def _mask(present: Present) -> pa.Array | None:
    return None if present is None else pa.array([not given for given in present], pa.bool_())


def _empty(_value: Value, _path: str) -> Build:
    return lambda values, present: pa.array(present or [True] * len(values), pa.bool_())


def _wrapper(value: Value, path: str) -> Build:
    build, get = _builder(value.inner[0].value, path), attrgetter("value")
    return lambda values, present: build(list(map(get, values)), present)


def _field_mask(value: Value, path: str) -> Build:
    paths, type_ = value.inner[0].value, arrow_type(value.type)
    build = _builder(paths, path)

    def lists(values: Sequence[Any], present: Present) -> pa.Array:
        column = _list([each.paths for each in values], build, type_)
        if present is None:
            return column
        return pa.ListArray.from_arrays(
            column.offsets, column.values, type=type_, mask=_mask(present)
        )

    return lists


def _converted(convert: Callable[[Any, str], Any]) -> Callable[[Value, str], Build]:
    """Return the maker of a column whose values are converted one by one."""

    def make(value: Value, path: str) -> Build:
        type_ = arrow_type(value.type)

        def build(values: Sequence[Any], present: Present) -> pa.Array:
            given = _masked(values, present)
            cells = [None if each is None else convert(each, path) for each in given]
            return pa.array(cells, type_)

        return build

    return make


def _map(value: Value, path: str) -> Build:
    keys = _builder(value.inner[0].value, f"{path}.key")
    items = _builder(value.inner[1].value, f"{path}.value")
    type_ = arrow_type(value.type)

    def build(values: Sequence[Any], _present: Present) -> pa.Array:
        try:
            pairs = [sorted(each.items(), key=_key) for each in values]
        except (UnicodeDecodeError, TypeError):  # TypeError: text and bytes are not sorted
            raise _not_utf8(path) from None
        offsets = _offsets(map(len, pairs))
        flat = list(chain.from_iterable(pairs))
        columns = [keys([key for key, _ in flat], None), items([item for _, item in flat], None)]
        if value.kind == "map":
            return pa.MapArray.from_arrays(offsets, *columns, type=type_)
        entries = pa.StructArray.from_arrays(columns, fields=list(type_.value_type))
        return pa.ListArray.from_arrays(offsets, entries, type=type_)

    return build


def _key(pair: tuple[Any, Any]) -> Any:
    return pair[0]


_BUILDERS: dict[str, Callable[[Value, str], Build]] = {
    "string": _string,
    "enum": _enum,
    "struct": _struct,
    "empty": _empty,
    "wrapper": _wrapper,
    "mask": _field_mask,
    "timestamp": _converted(micros_of),
    "duration": _converted(duration_of),
    "json": _converted(json_of),
    "map": _map,
    "pairs": _map,
}
