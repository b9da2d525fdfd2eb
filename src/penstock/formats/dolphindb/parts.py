"""What vectors are made of on the wire: flag, counts, scale, items; and the blocks of an array vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.formats.dolphindb import fixed, texts, types
from penstock.formats.dolphindb.cursor import int32
from penstock.formats.dolphindb.known import type_of
from penstock.formats.dolphindb.packing import write_scale
from penstock.formats.dolphindb.reading import read_object
from penstock.formats.dolphindb.types import FIXED_KINDS, Type, width

_NULL_OBJECT = bytes(3)
_BLOCK = 65_535


def flag(code: int, form: int) -> bytes:
    """Give the two bytes that begin every object."""
    return bytes((code, form))


def head(code: int, rows: int, columns: int = 1) -> bytes:
    """Give flag and counts of a vector."""
    return flag(code, types.VECTOR) + int32(rows) + int32(columns)


def body(found: Type, array: pa.Array) -> bytes:
    """Give the items of a vector, and their scale before them where the type has one."""
    if found.kind in FIXED_KINDS:
        return _scale(found, array) + fixed.to_wire(found, array)
    if found.kind == "text":
        return texts.write_texts(array)
    if found.kind == "blob":
        return texts.write_blobs(array)
    if found.kind == "any":
        return b"".join(map(_object, array.storage.to_pylist()))
    return b""


def array_vector(array: pa.Array) -> bytes:
    """Give a whole array vector: rows of numbers, in blocks."""
    lengths, values = _without_empty_rows(array)
    found = type_of(values)
    cells = fixed.to_wire(found, values)
    parts = [head(types.ARRAY_OFFSET + found.code, len(array), len(values)), _scale(found, values)]
    start = 0
    for first in range(0, len(lengths), _BLOCK):
        block = lengths[first : first + _BLOCK]
        stop = start + int(block.sum()) * width(found)
        parts += [_counts(block), cells[start:stop]]
        start = stop
    return b"".join(parts)


def _object(data: bytes | None) -> bytes:
    if data is None:
        return _NULL_OBJECT
    read_object(data)
    return data


def _scale(found: Type, array: pa.Array) -> bytes:
    return write_scale(found, array.type.scale) if found.kind == "decimal" else b""


def _counts(lengths: Any) -> bytes:
    size = next(each for each in (1, 2, 4) if int(lengths.max()) < 256**each)
    start = len(lengths).to_bytes(2, "little") + bytes((size, 0))
    return start + bytes(lengths.astype(f"<u{size}").tobytes())


def _without_empty_rows(array: pa.Array) -> tuple[Any, pa.Array]:
    """Put one null cell into each empty row: DolphinDB has no other."""
    values = array.flatten()
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    if (lengths > 0).all():
        return lengths, values
    filled = np.maximum(lengths, 1)
    real = np.repeat(lengths > 0, filled)
    places = np.zeros(len(real), np.int64)
    places[real] = np.arange(len(values))
    return filled, values.take(pa.array(places, mask=~real))
