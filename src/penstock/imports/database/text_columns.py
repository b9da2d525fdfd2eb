"""Columns of texts, as databases write values, into columns of Arrow's types without loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.imports.database.table_range import SourceColumn

_TRUE = pa.array(["t", "true", "1"])
_LISTS = msgspec.json.Decoder(list[str | None])


def text_column(name: str, type_: pa.DataType) -> SourceColumn:
    """Return a column whose values come as texts; lists as JSON arrays of texts, bytes as `\\x00ff`.

    >>> text_column("n", pa.decimal128(5, 2)).read(["1.50", None]).to_pylist()
    [Decimal('1.50'), None]
    """
    return SourceColumn(name, type_, partial(_read, _conversion(type_), type_))


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return the type of numbers with that many digits; text where Arrow has none.

    >>> decimal_type(10, 2), decimal_type(1000, 10)
    (Decimal128Type(decimal128(10, 2)), DataType(string))
    """
    if not 0 < precision <= 76 or not 0 <= scale <= precision:
        return pa.string()
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _read(convert: Callable[[pa.Array], pa.Array], type_: pa.DataType, values: Any) -> pa.Array:
    texts = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    return convert(texts) if texts.null_count < len(texts) else pa.nulls(len(texts), type_)


def _conversion(type_: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    if pa.types.is_boolean(type_):
        return _truths
    if pa.types.is_binary(type_):
        return _bytes
    if pa.types.is_list(type_):
        return partial(_lists, _conversion(type_.value_type), type_)
    return partial(pc.cast, target_type=type_)


def _truths(texts: pa.Array) -> pa.Array:
    return pc.if_else(texts.is_valid(), pc.is_in(texts, _TRUE), None)


def _bytes(texts: pa.Array) -> pa.Array:
    values = (None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist())
    return pa.array(values, pa.binary())


def _lists(item: Callable[[pa.Array], pa.Array], type_: pa.DataType, texts: pa.Array) -> pa.Array:
    try:
        lists = [None if text is None else _LISTS.decode(text) for text in texts.to_pylist()]
    except msgspec.ValidationError:
        raise ValueError("an array of several dimensions has no form here") from None
    plain = pa.array(lists, pa.list_(pa.string()))
    items = plain.values
    typed = item(items) if items.null_count < len(items) else pa.nulls(len(items), type_.value_type)
    return pa.ListArray.from_arrays(plain.offsets, typed, type_, mask=plain.is_null())
