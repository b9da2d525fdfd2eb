"""Generated types of rows as Spark has them, and values of them."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

# Protobuf refuses names that differ in underscores alone.
NAMES = st.from_regex(r"\A_?[a-z][a-z0-9]{0,5}\Z")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _times(zone: timezone | None) -> st.SearchStrategy[datetime]:
    naive = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
    return naive.map(lambda value: value.replace(tzinfo=zone))


SCALARS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): _whole(8),
    pa.int16(): _whole(16),
    pa.int32(): _whole(32),
    pa.int64(): _whole(64),
    pa.float32(): st.floats(width=32, allow_nan=False, allow_infinity=False),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=12),
    pa.date32(): st.dates(date(1700, 1, 1), date(2200, 1, 1)),
    pa.timestamp("us", tz="UTC"): _times(timezone.utc),
    pa.timestamp("us"): _times(None),
    pa.decimal128(9, 2): st.decimals(-9999999, 9999999, places=2),
    pa.decimal128(38, 6): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda number: Decimal(f"{number}E-6")
    ),
}


def types(*, lists_of_lists: bool = True) -> st.SearchStrategy[pa.DataType]:
    """Types of columns; Protobuf has no lists of lists and no maps of lists."""

    def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        item = inner if lists_of_lists else inner.map(_single)
        return st.one_of(
            item.map(pa.list_),
            item.map(lambda type_: pa.map_(pa.string(), type_)),
            structs(inner),
        )

    return st.recursive(st.sampled_from(list(SCALARS)), nested, max_leaves=4)


def structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(
        st.tuples(NAMES, inner), min_size=1, max_size=4, unique_by=lambda each: each[0].strip("_")
    )
    return fields.map(pa.struct)


def _single(type_: pa.DataType) -> pa.DataType:
    while pa.types.is_list(type_) or pa.types.is_map(type_):
        type_ = type_.value_type if pa.types.is_list(type_) else type_.item_type
    return type_


def values(type_: pa.DataType, *, null_items: bool = True) -> st.SearchStrategy[Any]:
    """Values of a type, without a null at the top."""
    inner = nullable if null_items else values
    if pa.types.is_list(type_):
        return st.lists(inner(type_.value_type, null_items=null_items), max_size=3)
    if pa.types.is_map(type_):
        items = inner(type_.item_type, null_items=null_items)
        return st.dictionaries(TEXTS, items, max_size=3)
    if pa.types.is_struct(type_):
        return st.fixed_dictionaries(
            {field.name: nullable(field.type, null_items=null_items) for field in type_}
        )
    return SCALARS[type_]


def nullable(type_: pa.DataType, *, null_items: bool = True) -> st.SearchStrategy[Any]:
    return st.none() | values(type_, null_items=null_items)


@st.composite
def rows(draw: Any, *, lists_of_lists: bool = True, null_items: bool = True) -> pa.Array:
    """Return some rows of a generated type, as a part of a longer column: batches are slices, too."""
    type_ = draw(structs(types(lists_of_lists=lists_of_lists)))
    made = draw(st.lists(values(type_, null_items=null_items), min_size=1, max_size=5))
    return column([made[0], *made, made[0]], type_).slice(1, len(made))


def column(items: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([_arrow(item, type_) for item in items], type_)


def _arrow(item: Any, type_: pa.DataType) -> Any:
    """Give maps as pairs, as Arrow takes them."""
    if item is None:
        return None
    if pa.types.is_map(type_):
        return [(key, _arrow(value, type_.item_type)) for key, value in item.items()]
    if pa.types.is_list(type_):
        return [_arrow(value, type_.value_type) for value in item]
    if pa.types.is_struct(type_):
        return {field.name: _arrow(item[field.name], field.type) for field in type_}
    return item


def plain(item: Any, type_: pa.DataType) -> Any:
    """Return a value of a column with its maps as dicts."""
    if item is None:
        return None
    if pa.types.is_map(type_):
        return {key: plain(value, type_.item_type) for key, value in item}
    if pa.types.is_list(type_):
        return [plain(value, type_.value_type) for value in item]
    if pa.types.is_struct(type_):
        return {field.name: plain(item[field.name], field.type) for field in type_}
    return item
