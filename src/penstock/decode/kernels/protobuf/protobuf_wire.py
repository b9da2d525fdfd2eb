"""Reads of many places in the bytes of a batch at once: the numbers and texts of Protobuf bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.decode.kernels.varint_words import Ints, Words, read_varints
from penstock.formats.limits import Budget
from penstock.formats.protobuf.protobuf_size import PACKED

Bools = NDArray[np.bool_]

NEVER = 2**62
"""The place after a number that is not a valid varint: after the end of every message."""
_PADDING = 16
_LARGE = 2**40
_LONGEST_SIZE = 5


class Window:
    """The bytes of a batch of bodies, with room to read eight bytes from any place."""

    def __init__(self, bodies: pa.Array) -> None:
        offsets = np.frombuffer(bodies.buffers()[1], np.int32)
        offsets = offsets[bodies.offset : bodies.offset + len(bodies) + 1].astype(np.int64)
        size = int(offsets[-1] - offsets[0])
        self.bytes = np.zeros(size + _PADDING, np.uint8)
        if size:
            whole = np.frombuffer(bodies.buffers()[2], np.uint8)
            self.bytes[:size] = whole[offsets[0] : offsets[-1]]
        # As much as the client would count for these bodies, or more.
        self.budget = Budget("a batch of Protobuf messages")
        self.budget.spend(size * PACKED)
        self.starts: Ints = offsets[:-1] - offsets[0]
        self.ends: Ints = offsets[1:] - offsets[0]
        self._words = self._every_byte("<u8")
        self._halves = self._every_byte("<u4")

    def _every_byte(self, dtype: str) -> NDArray[Any]:
        """Return a view with an element at each byte."""
        count = len(self.bytes) - np.dtype(dtype).itemsize + 1
        view: NDArray[Any] = np.ndarray((count,), dtype, self.bytes, strides=(1,))
        return view

    def fixed(self, at: Ints, width: int) -> Words:
        """Return the numbers of four or eight bytes at some places."""
        return (self._words if width == 8 else self._halves)[at].astype(np.uint64)

    def varints(self, at: Ints) -> tuple[Words, Ints]:
        """Return the varints at some places, and the places after them (`NEVER`: it is not valid).

        >>> window = Window(pa.array([b"\\x05", b"\\xac\\x02"]))
        >>> numbers, after = window.varints(window.starts)
        >>> numbers.tolist(), after.tolist()
        ([5, 300], [1, 3])
        """
        first = self.bytes[at]
        if len(first) == 0 or first.max() < 0x80:
            return first.astype(np.uint64), at + 1
        numbers, sizes, wrong = read_varints(self.bytes, self._words, at)
        after = at + sizes
        after[wrong] = NEVER
        return numbers, after

    def sized(self, at: Ints) -> tuple[Ints, Ints]:
        """Return where the values with a size at some places start and end.

        A size has five bytes at most, as in the parser of Protobuf itself: a longer one is not valid.
        """
        sizes, starts = self.varints(at)
        ends = starts + np.minimum(sizes, np.uint64(_LARGE)).astype(np.int64)
        ends[starts - at > _LONGEST_SIZE] = NEVER
        return starts, ends

    def binary(self, starts: Ints, ends: Ints) -> pa.Array:
        """Return the bytes between some places, which are in ascending order, as a binary array.

        An empty range may be at the beginning instead.
        """
        # Values and the gaps between them alternate, so that Arrow can take the values.
        edges = np.empty(2 * len(starts) + 1, np.int64)
        edges[:-1:2], edges[1::2], edges[-1] = starts, ends, 0
        edges = np.maximum.accumulate(edges)
        buffers = [None, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(self.bytes)]
        both = pa.Array.from_buffers(pa.binary(), 2 * len(starts), buffers)
        return both.take(pa.array(np.arange(0, 2 * len(starts), 2)))


def spread(starts: Ints, sizes: Ints, step: int = 1) -> Ints:
    """Return `size` places from each start, `step` apart.

    >>> spread(np.array([10, 20]), np.array([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    before = np.cumsum(sizes) - sizes
    result: Ints = np.repeat(starts - before * step, sizes)
    result += np.arange(len(result)) * step
    return result
