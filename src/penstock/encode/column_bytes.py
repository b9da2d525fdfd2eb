"""Columns of bytes, one item for each row: built, joined and nested without a Python object per row.

An encode turns a column into bytes. What it cannot write is a `RefusedError` that names the column and
the first such value: the sink splits the batch until the row is isolated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import RefusedError

Encode = Callable[[pa.Array], pa.Array]
"""Bytes for each item of a column; the items of a column that is given to it are not null."""

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]


def joined(*parts: Any) -> pa.Array:
    """Return the items of several columns of bytes one after the other; a bytes object is in each.

    >>> joined(b"<", pa.array([b"a", b"bc"]), b">").to_pylist()
    [b'<a>', b'<bc>']
    """
    scalars = [pa.scalar(part) if isinstance(part, bytes) else part for part in parts]
    if len(scalars) == 1:
        return scalars[0]
    return pc.binary_join_element_wise(*scalars, pa.scalar(b""))


def repeated(data: bytes, count: int) -> pa.Array:
    """Return a column in which each item is the same."""
    return pa.repeat(pa.scalar(data), count)


def fixed_width(data: Bytes) -> pa.Array:
    """Return the rows of a matrix of bytes.

    >>> fixed_width(np.array([[1, 2], [3, 4]], np.uint8)).to_pylist()
    [b'\\x01\\x02', b'\\x03\\x04']
    """
    count, width = data.shape
    return _binary(np.arange(count + 1, dtype=np.int64) * width, np.ascontiguousarray(data))


def of_lengths(data: Bytes, lengths: Counts) -> pa.Array:
    """Return items of these lengths, cut from bytes that follow each other."""
    return _binary(starts_of(lengths), data)


def starts_of(lengths: Counts) -> Counts:
    """Return the places at which items of these lengths start, and the end.

    >>> starts_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _binary(starts: Counts, data: Bytes) -> pa.Array:
    if starts[-1] > np.iinfo(np.int32).max:
        raise RefusedError("the values of one batch take more than 2 GiB as bytes")
    buffers = [None, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(starts) - 1, buffers)


def numbers(column: pa.Array) -> npt.NDArray[Any]:
    """Return a column of numbers without nulls as an array."""
    array: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array


def varints(values: npt.NDArray[np.uint64]) -> pa.Array:
    """Return whole numbers in groups of seven bits, the lowest first: Avro's and Protobuf's form.

    >>> varints(np.array([1, 300], np.uint64)).to_pylist()
    [b'\\x01', b'\\xac\\x02']
    """
    if not len(values) or values.max() < 0x80:
        return fixed_width(values.astype(np.uint8).reshape(-1, 1))
    lengths = np.ones(len(values), np.int64)
    rest = values >> np.uint64(7)
    while rest.any():
        lengths += rest > 0
        rest >>= np.uint64(7)
    places = np.arange(lengths.max())
    groups: Bytes = (values[:, None] >> (places * 7).astype(np.uint64)).astype(np.uint8)
    groups &= np.uint8(0x7F)
    more = places < (lengths - 1)[:, None]
    groups |= more.astype(np.uint8) << np.uint8(7)
    return of_lengths(groups[places < lengths[:, None]], lengths)


def zigzag(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return signed numbers so that small ones stay small: 0, -1, 1, -2 become 0, 1, 2, 3.

    >>> zigzag(np.array([0, -1, 1, -2])).tolist()
    [0, 1, 2, 3]
    """
    values = values.astype(np.int64)
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def byte_lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return the length of each item of a column of texts or bytes, in bytes."""
    return numbers(pc.binary_length(column)).astype(np.int64)


def bytes_of(column: pa.Array) -> Bytes:
    """Return the bytes of all items of a column of texts or bytes, one after the other.

    >>> bytes_of(pa.array(["ab", None, "c"])[1:]).tobytes()
    b'c'
    """
    _, offsets, data = column.buffers()
    if data is None or offsets is None or not len(column):
        return np.zeros(0, np.uint8)
    places = np.frombuffer(offsets, np.int32)[column.offset :]
    return np.frombuffer(data, np.uint8)[places[0] : places[len(column)]]


def as_bytes(column: pa.Array) -> pa.Array:
    """Return texts as their UTF-8."""
    return column.cast(pa.binary())


def optional(encode: Encode, null: bytes) -> Encode:
    """Return an encode that writes `null` where the column has none.

    >>> optional(as_bytes, b"-")(pa.array(["a", None])).to_pylist()
    [b'a', b'-']
    """

    def run(column: pa.Array) -> pa.Array:
        if not column.null_count:
            return encode(column)
        return pc.fill_null(where_valid(encode, column), null)

    return run


def where_valid(encode: Encode, column: pa.Array) -> pa.Array:
    """Return what an encode makes of the items that are not null; null for the others."""
    if not column.null_count:
        return encode(column)
    valid = numbers(column.is_valid())
    items = np.cumsum(valid) - 1
    return encode(column.drop_null()).take(pa.array(items, pa.int64(), mask=~valid))


def required(encode: Encode, path: str) -> Encode:
    """Return an encode that refuses nulls."""

    def run(column: pa.Array) -> pa.Array:
        if column.null_count:
            raise RefusedError(f"column {path!r} is null, and the schema requires a value")
        return encode(column)

    return run


def refuse_where(bad: Flags, column: pa.Array, path: str, reason: str) -> None:
    """Raise `RefusedError` with the first value that is bad.

    >>> refuse_where(np.array([False, True]), pa.array([1, 300]), "n", "is not a byte")
    Traceback (most recent call last):
    ...
    penstock.errors.RefusedError: column 'n': 300 is not a byte
    """
    if bad.any():
        value = column[int(np.argmax(bad))].as_py()
        raise RefusedError(f"column {path!r}: {value!r:.80} {reason}")


def items_of(lists: pa.Array) -> tuple[pa.Array, Counts]:
    """Return the items of all lists of a column one after the other, and the length of each list."""
    lengths = numbers(lists.value_lengths()).astype(np.int64)
    return lists.flatten(), lengths


def pairs_of(maps: pa.Array) -> tuple[pa.Array, pa.Array, Counts]:
    """Return the keys and the values of all maps of a column, and the length of each map."""
    offsets = numbers(maps.offsets).astype(np.int64)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    return maps.keys.slice(start, count), maps.items.slice(start, count), np.diff(offsets)


def gathered(items: pa.Array, counts: Counts) -> pa.Array:
    """Return items joined to lists of these lengths, without a copy of their bytes.

    >>> gathered(pa.array([b"a", b"b", b"c"]), np.array([2, 0, 1])).to_pylist()
    [b'ab', b'', b'c']
    """
    offsets = np.frombuffer(items.buffers()[1], np.int32)[items.offset :]
    places = offsets[starts_of(counts)] if len(items) else np.zeros(len(counts) + 1, np.int32)
    data = items.buffers()[2] or pa.py_buffer(b"")
    return pa.Array.from_buffers(
        pa.binary(), len(counts), [None, pa.py_buffer(np.ascontiguousarray(places)), data]
    )


def separated(items: pa.Array, counts: Counts) -> pa.Array:
    """Return items with a comma before all but the first of each list.

    >>> separated(pa.array([b"a", b"b", b"c"]), np.array([2, 0, 1])).to_pylist()
    [b'a', b',b', b'c']
    """
    first = np.zeros(len(items), bool)
    first[starts_of(counts)[:-1][counts > 0]] = True
    return joined(pc.if_else(pa.array(first), pa.scalar(b""), pa.scalar(b",")), items)
