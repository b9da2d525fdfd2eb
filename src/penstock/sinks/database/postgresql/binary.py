"""Rows in the binary form of COPY, made from whole Arrow columns: nothing is printed, nothing is parsed.

A row is the number of its cells, then for each cell its length (-1 for a null) and its bytes.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
_EPOCH_DAYS = 10_957
_EPOCH_MICROSECONDS = _EPOCH_DAYS * 86_400_000_000
_NULL = -1
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
# A decimal has digits of base 10 000.
_BASE = 10_000
_DIGITS = 4
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_NEGATIVE = 0x4000


def binary(batch: pa.RecordBatch) -> memoryview:
    """Return the batch's rows in the binary form.

    >>> bytes(binary(pa.RecordBatch.from_pydict({"n": pa.array([1, None], pa.int16())})))
    b'\\x00\\x01\\x00\\x00\\x00\\x02\\x00\\x01\\x00\\x01\\xff\\xff\\xff\\xff'
    """
    rows = _Rows(batch.num_rows)
    rows.same(len(batch.columns).to_bytes(2, "big"))
    for column in batch.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            rows.lengths(pc.binary_length(column))
            rows.varying(column.cast(pa.binary()))
        else:
            rows.cells(_fixed(column), column)
    return rows.joined()


class _Rows:
    """Rows that grow to the right. Parts of one width are put side by side before they are joined."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._parts: list[pa.Array] = []
        self._waiting: list[Bytes] = []

    def same(self, part: bytes) -> None:
        """Add the same bytes to every row."""
        self._waiting.append(
            np.broadcast_to(np.frombuffer(part, np.uint8), (self._count, len(part)))
        )

    def lengths(self, lengths: pa.Array) -> None:
        """Add the lengths of the cells that follow; a null is a cell of no length."""
        sizes = pc.fill_null(lengths, _NULL) if lengths.null_count else lengths
        self._waiting.append(big_endian(sizes.to_numpy(zero_copy_only=False).astype(np.int32)))

    def varying(self, cells: pa.Array) -> None:
        """Add cells of different lengths."""
        self._flush()
        self._parts.append(pc.fill_null(cells, b"") if cells.null_count else cells)

    def cells(self, fixed: Bytes, column: pa.Array) -> None:
        """Add cells of one width, with their lengths; those of nulls have neither bytes nor width."""
        width = fixed.shape[1]
        if not column.null_count:
            self.same(width.to_bytes(4, "big"))
            self._waiting.append(fixed)
            return
        there = column.is_valid()
        self.lengths(pc.if_else(there, pa.scalar(width, pa.int32()), pa.scalar(None, pa.int32())))
        self.varying(pc.if_else(there, _array(fixed), pa.scalar(None, pa.binary())))

    def joined(self) -> memoryview:
        """Return all rows, one after the other."""
        self._flush()
        rows = pc.binary_join_element_wise(*self._parts, b"")
        ends = np.frombuffer(rows.buffers()[1], np.int32)
        return memoryview(rows.buffers()[2])[: ends[self._count]]

    def _flush(self) -> None:
        if self._waiting:
            self._parts.append(_array(np.concatenate(self._waiting, axis=1)))
            self._waiting = []


def _array(matrix: Bytes) -> pa.Array:
    """Return each line of a matrix as one value."""
    count, width = matrix.shape
    ends = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * np.int32(width))
    return pa.Array.from_buffers(pa.binary(), count, [None, ends, pa.py_buffer(matrix)])


def _fixed(column: pa.Array) -> Bytes:
    """Return the bytes of each value; where a value is null they mean nothing."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return numeric(_raw(column, np.uint64, 2), kind.precision, kind.scale)
    if pa.types.is_boolean(kind):
        return _raw(column.cast(pa.uint8()), np.uint8).reshape(-1, 1)
    if pa.types.is_date32(kind):
        return big_endian(_raw(column, np.int32) - np.int32(_EPOCH_DAYS))
    if pa.types.is_timestamp(kind):
        return big_endian(_raw(column, np.int64) - _EPOCH_MICROSECONDS)
    return big_endian(_raw(column, np.dtype(kind.to_pandas_dtype())))


def _raw(column: pa.Array, kind: Any, words: int = 1) -> npt.NDArray[Any]:
    """Return the memory of a column's values."""
    values = np.frombuffer(column.buffers()[1], kind)
    start, end = column.offset * words, (column.offset + len(column)) * words
    return values[start:end]


def big_endian(values: npt.NDArray[Any]) -> Bytes:
    """Return the bytes of each value, the greatest first.

    >>> big_endian(np.array([258], np.int16)).tolist()
    [[1, 2]]
    """
    swapped = values.astype(values.dtype.newbyteorder(">"))
    return swapped.view(np.uint8).reshape(len(values), values.dtype.itemsize)


def numeric(words: Words, precision: int, scale: int) -> Bytes:
    """Return the cells of decimals: unscaled values, each given as its lower and its upper 64 bits.

    >>> numeric(np.array([15, 0], np.uint64), 3, 1).tolist()  # 1.5
    [[0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 19, 136]]
    """
    before, after = ceil((precision - scale) / _DIGITS), ceil(scale / _DIGITS)
    shift = after * _DIGITS - scale
    negative, limbs = _magnitudes(words, precision + shift)
    _multiply(limbs, 10**shift)
    count = before + after
    cells: npt.NDArray[Any] = np.empty((len(negative), 4 + count), ">i2")
    cells[:, 0], cells[:, 1], cells[:, 3] = count, before - 1, scale
    cells[:, 2] = np.where(negative, _NEGATIVE, 0)
    for at in range(count):
        cells[:, 3 + count - at] = _take_digit(limbs)
    return cells.view(np.uint8)


def _magnitudes(words: Words, digits: int) -> tuple[npt.NDArray[np.bool_], list[Words]]:
    """Split into sign and limbs of 32 bits, the lowest first; as many as such numbers can fill."""
    low, high = words[0::2], words[1::2]
    negative = high.view(np.int64) < 0
    lower = np.where(negative, ~low + np.uint64(1), low)
    upper = np.where(negative, ~high + (lower == 0), high)
    limbs = [lower & _LOW, lower >> _HALF, upper & _LOW, upper >> _HALF, np.zeros_like(lower)]
    return negative, limbs[: ceil(digits * log2(10) / 32)]


def _multiply(limbs: list[Words], factor: int) -> None:
    carry = np.zeros_like(limbs[0])
    for at, limb in enumerate(limbs):
        product = limb * np.uint64(factor) + carry
        limbs[at], carry = product & _LOW, product >> _HALF


def _take_digit(limbs: list[Words]) -> Words:
    """Divide in place by the base, and return the remainder."""
    rest = np.zeros_like(limbs[0])
    for at in reversed(range(len(limbs))):
        current = (rest << _HALF) | limbs[at]
        limbs[at] = current // np.uint64(_BASE)
        rest = current - limbs[at] * np.uint64(_BASE)
    return rest
