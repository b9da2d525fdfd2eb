"""Items of any length between the wire and Arrow: text with a zero at its end, and counted bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.dolphindb.cursor import Cursor, int32
from penstock.formats.dolphindb.packing import LONGEST_TEXT

_WINDOW = 256
_MOST_SYMBOLS = 2_097_152
_SYMBOLS = pa.dictionary(pa.int32(), pa.string())


def read_texts(cursor: Cursor, count: int) -> pa.Array:
    """Return `count` texts, separated by zero bytes."""
    cursor.need(count, 1, "a vector of text")
    ends = _ends(cursor, count)
    cursor.budget.spend(count * 32 + 2 * int(ends[-1]) if count else 0)
    data = np.frombuffer(cursor.take(int(ends[-1]) + 1 if count else 0), "u1")
    lengths = np.diff(ends, prepend=-1) - 1
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("<i4")
    array = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data[data != 0]))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(f"a text is not UTF-8: {error}") from error
    return array


def write_texts(array: pa.Array) -> bytes:
    """Return the bytes of texts; a null is the empty text."""
    filled = array.fill_null("")
    offsets, data = _offsets_and_data(filled)
    lengths = np.diff(offsets)
    if (data == 0).any():
        raise FormatError(
            "DolphinDB's text cannot hold a zero character; send bytes (BLOB) instead"
        )
    if lengths.size and lengths.max() >= LONGEST_TEXT:
        raise FormatError(
            f"text of {lengths.max()} bytes: DolphinDB takes less than {LONGEST_TEXT}"
        )
    buffer = np.zeros(len(data) + len(filled), "u1")
    is_text = np.ones(len(buffer), bool)
    is_text[offsets[1:] - offsets[0] + np.arange(len(filled))] = False
    buffer[is_text] = data
    return buffer.tobytes()


def read_blobs(cursor: Cursor, count: int) -> pa.Array:
    """Return `count` byte strings with their lengths before them."""
    cursor.need(count, 4, "a vector of BLOB")
    start = cursor.place
    cursor.budget.spend(count * 64)
    items = [cursor.take(cursor.count("a BLOB"), "a BLOB") for _ in range(count)]
    cursor.budget.spend(2 * (cursor.place - start))
    return pa.array(items, pa.binary())


def write_blobs(array: pa.Array) -> bytes:
    """Return counted bytes; a null is the empty one."""
    return b"".join(int32(len(each)) + each for each in array.fill_null(b"").to_pylist())


def read_symbols(cursor: Cursor, count: int) -> pa.Array:
    """Return symbols: indexes into a base that precedes them, or was read before."""
    base = _base(cursor, count)
    cursor.need(count, 4, "a vector of SYMBOL")
    cursor.budget.spend(count * 8)
    indexes = np.frombuffer(cursor.take(count * 4), "<i4")
    if count and (indexes.min() < 0 or indexes.max() >= len(base)):
        raise FormatError(f"a SYMBOL's index is outside of its base of {len(base)}")
    return pa.DictionaryArray.from_arrays(pa.array(indexes), base)


def write_symbols(array: pa.DictionaryArray, base_id: int) -> bytes:
    """Return base and indexes; entry 0 of the base is the empty text, which is null, too."""
    base, indexes = array.dictionary.fill_null(""), array.indices
    if not len(base) or base[0].as_py():
        base = pa.concat_arrays([pa.array([""]), base])
        indexes = pa.array(indexes.fill_null(-1).to_numpy() + 1)
    if len(base) > _MOST_SYMBOLS:
        raise FormatError(
            f"{len(base)} different symbols; DolphinDB takes {_MOST_SYMBOLS}: send text"
        )
    numbers = indexes.fill_null(0).to_numpy().astype("<i4")
    return b"".join([int32(base_id), int32(len(base)), write_texts(base), numbers.tobytes()])


def as_symbols(array: pa.Array) -> pa.Array:
    """Return text as symbols."""
    return array.dictionary_encode().cast(_SYMBOLS)


def _base(cursor: Cursor, count: int) -> pa.Array:
    base_id, size = cursor.int32("a symbol base"), cursor.count("a symbol base")
    if size > _MOST_SYMBOLS:
        raise FormatError(f"a symbol base of {size}; DolphinDB has {_MOST_SYMBOLS} at most")
    if size:
        cursor.bases[base_id] = read_texts(cursor, size)
    elif base_id not in cursor.bases and count:
        raise FormatError(f"the symbol base {base_id} is used, but was never given")
    base = cursor.bases.get(base_id, pa.array([""]))
    if base[0].as_py():
        raise FormatError(f"the symbol base {base_id} does not begin with the empty text")
    return base


def _ends(cursor: Cursor, count: int) -> Any:
    """Find the zero bytes from here on, in ever larger windows: other columns follow, and are long."""
    size = max(_WINDOW, count * 16)
    while True:
        part = np.frombuffer(cursor.data, "u1", min(size, cursor.left), cursor.place)
        ends = np.flatnonzero(part == 0)[:count]
        if len(ends) == count:
            return ends
        if size >= cursor.left:
            raise FormatError(
                f"{count} texts at byte {cursor.place}, but only {len(ends)} have an end"
            )
        size *= 4


def _offsets_and_data(array: pa.Array) -> tuple[Any, Any]:
    _, offsets, data = array.buffers()
    if not len(array):
        return np.zeros(1, "<i4"), np.zeros(0, "u1")
    part = np.frombuffer(offsets, "<i4")[array.offset : array.offset + len(array) + 1]
    return part, np.frombuffer(data or b"", "u1")[part[0] : part[-1]]
