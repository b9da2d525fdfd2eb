"""Numbers of variable length at many places at once, as Avro and Protobuf write them.

A number has seven bits in each byte; the highest bit of a byte says whether another one follows. Eight
bytes are taken as one word and put together by shifts; the two more of a longer number are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
_MORE = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
# Neighbouring groups of 7, then 14, then 28 bits are joined: the lower ones, the upper ones, the shift.
_JOINS = [
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
]


def read_varints(
    data: NDArray[np.uint8], words: NDArray[Any], at: Ints
) -> tuple[Words, Ints, Ints]:
    """Return the numbers at some places, their sizes, and which of them are longer than 64 bits.

    `words` has a word for each byte of `data`, which has ten bytes after the last place.

    >>> data = np.frombuffer(bytes([0xAC, 2]) + bytes(16), np.uint8)
    >>> words = np.ndarray((10,), "<u8", data.data, 0, (1,))
    >>> [found.tolist() for found in read_varints(data, words, np.array([0]))]
    [[300], [2], []]
    """
    taken: Words = words[at]
    stops = ~taken & _MORE
    used = stops ^ (stops - np.uint64(1))
    numbers = taken & used & ~_MORE
    for lower, upper, shift in _JOINS:
        numbers = (numbers & lower) | ((numbers & upper) >> shift)
    sizes: Ints = (((used & _ONES) * _ONES) >> np.uint64(56)).astype(np.int64)
    long = np.flatnonzero(stops == 0)
    if not len(long):
        return numbers, sizes, long
    ninth, tenth = (data[at[long] + place].astype(np.uint64) for place in (8, 9))
    goes_on = ninth > 0x7F
    numbers[long] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
    numbers[long] |= np.where(goes_on, tenth, np.uint64(0)) << np.uint64(63)
    sizes[long] = np.where(goes_on, 10, 9)
    return numbers, sizes, long[goes_on & (tenth > 1)]
