"""How much memory the Python objects of an Arrow array would take, counted without making them.

Arrow shares: thousands of rows may refer to one long text, and a list of nulls has no bytes at all.
Python objects do not share, so that a small array can become gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

# One size for all items, or a vector with the size of each.
Sizes = Any
_POINTER = 8
_SCALAR = 72
_TEXT = 64
_LIST = 72
_MAPPING = 232
_ENTRY = 104
# An item of ANY is an object of DolphinDB's again: what its bytes become at most.
_ANY_FACTOR = 256
# Characters beyond ASCII take up to four bytes each.
_WIDEST = 4


def python_size(array: pa.Array | pa.ChunkedArray) -> int:
    """Count the bytes of `array.to_pylist()`, rather too many than too few.

    >>> python_size(pa.nulls(1000))
    8000
    """
    if isinstance(array, pa.ChunkedArray):
        return sum(map(python_size, array.chunks))
    sizes = _sizes(array)
    total = sizes.sum() if isinstance(sizes, np.ndarray) else sizes * len(array)
    return int(total) + _POINTER * len(array)


def _sizes(array: pa.Array) -> Sizes:
    type_ = array.type
    if isinstance(type_, pa.BaseExtensionType):
        inner = _sizes(array.storage)
        return _SCALAR + inner * (_ANY_FACTOR if pa.types.is_binary(type_.storage_type) else 1)
    for is_kind, count in _KINDS:
        if is_kind(type_):
            return count(array)
    return _SCALAR


def _text_sizes(array: pa.Array) -> Sizes:
    return _TEXT + _WIDEST * np.diff(_offsets(array)).astype(np.float64)


def _view_sizes(array: pa.Array) -> Sizes:
    views = np.frombuffer(array.buffers()[1] or b"", "<i4").reshape(-1, 4)
    part = views[array.offset : array.offset + len(array), 0]
    return _TEXT + _WIDEST * np.maximum(part, 0).astype(np.float64)


def _list_sizes(array: pa.Array) -> Sizes:
    offsets = _offsets(array)
    return _spans(array.values, offsets[:-1], np.diff(offsets))


def _list_view_sizes(array: pa.Array) -> Sizes:
    return _spans(array.values, _numbers(array.offsets), _numbers(array.sizes))


def _fixed_list_sizes(array: pa.Array) -> Sizes:
    width = array.type.list_size
    starts = (np.arange(len(array)) + array.offset) * width
    return _spans(array.values, starts, np.full(len(array), width))


def _map_sizes(array: pa.Array) -> Sizes:
    offsets = _offsets(array)
    keys = _spans(array.keys, offsets[:-1], np.diff(offsets))
    return keys + _spans(array.items, offsets[:-1], np.diff(offsets)) + _LIST * np.diff(offsets)


def _spans(items: pa.Array, starts: Any, counts: Any) -> Sizes:
    """Sum the sizes of the items of each list; lists may overlap."""
    lists = _LIST + _POINTER * counts.astype(np.float64)
    sizes = _sizes(items)
    if not isinstance(sizes, np.ndarray):
        return lists + sizes * counts
    sums = np.concatenate([[0.0], np.cumsum(sizes)])
    return lists + sums[starts + counts] - sums[starts]


def _struct_sizes(array: pa.Array) -> Sizes:
    fields = [_sizes(array.field(place)) for place in range(array.type.num_fields)]
    return _MAPPING + _ENTRY * len(fields) + sum(fields)


def _dictionary_sizes(array: pa.Array) -> Sizes:
    sizes = _sizes(array.dictionary)
    if not isinstance(sizes, np.ndarray) or not len(sizes):
        return sizes if not isinstance(sizes, np.ndarray) else 0
    return sizes[_numbers(array.indices.fill_null(0))]


def _most(array: pa.Array) -> Sizes:
    sizes = _sizes(array)
    return float(sizes.max(initial=0)) if isinstance(sizes, np.ndarray) else sizes


def _union_sizes(array: pa.Array) -> Sizes:
    return _SCALAR + sum(_most(array.field(place)) for place in range(array.type.num_fields))


def _offsets(array: pa.Array) -> Any:
    wide = array.type in _WIDE or pa.types.is_large_list(array.type)
    if not len(array):
        return np.zeros(1, np.int64)
    numbers = np.frombuffer(array.buffers()[1], "<i8" if wide else "<i4")
    return numbers[array.offset : array.offset + len(array) + 1].astype(np.int64)


def _numbers(array: pa.Array) -> Any:
    return array.to_numpy(zero_copy_only=False).astype(np.int64)


_WIDE = (pa.large_string(), pa.large_binary())
_KINDS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Sizes]]] = [
    (pa.types.is_null, lambda _array: 0),
    (pa.types.is_boolean, lambda _array: 0),
    (lambda type_: type_ in (pa.string(), pa.binary(), *_WIDE), _text_sizes),
    (lambda type_: type_ in (pa.string_view(), pa.binary_view()), _view_sizes),
    (pa.types.is_fixed_size_binary, lambda array: _TEXT + array.type.byte_width),
    (lambda type_: pa.types.is_list(type_) or pa.types.is_large_list(type_), _list_sizes),
    (
        lambda type_: pa.types.is_list_view(type_) or pa.types.is_large_list_view(type_),
        _list_view_sizes,
    ),
    (pa.types.is_fixed_size_list, _fixed_list_sizes),
    (pa.types.is_map, _map_sizes),
    (pa.types.is_struct, _struct_sizes),
    (pa.types.is_dictionary, _dictionary_sizes),
    (pa.types.is_run_end_encoded, lambda array: _most(array.values)),
    (pa.types.is_union, _union_sizes),
]
