"""Avro's numbers of variable length, read from all lanes at once."""

from __future__ import annotations

import numpy as np

from penstock.decode.kernels.avro.lanes import Lanes, Numbers
from penstock.decode.kernels.varint_words import read_varints

_ONE = np.uint64(1)
_BYTES = np.arange(256)
_SMALL = (_BYTES >> 1) ^ -(_BYTES & 1)


def read_longs(lanes: Lanes) -> Numbers:
    """Read a number of 64 bits in each lane; those of refused lanes mean nothing.

    >>> import pyarrow as pa
    >>> from penstock.decode.kernels.avro.lanes import Batch
    >>> read_longs(Batch(pa.array([bytes([3]), bytes([0x80, 1])])).lanes()).tolist()
    [-2, 64]
    """
    first = lanes.batch.data[lanes.at]
    if not (first > 0x7F).any():
        lanes.move(1)
        small: Numbers = _SMALL[first]
        return small
    numbers, sizes, longer = read_varints(lanes.batch.data, lanes.batch.words, lanes.at)
    if len(longer):
        wrong = np.zeros(len(lanes), np.bool_)
        wrong[longer] = True
        lanes.refuse(wrong)
    lanes.move(sizes)
    return _signed(numbers)


def _signed(number: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Numbers:
    signed: Numbers = (number >> _ONE).view(np.int64) ^ -(number & _ONE).view(np.int64)
    return signed
