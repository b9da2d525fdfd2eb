"""Decimals in PostgreSQL's binary form: digits of base 10 000, taken from 128-bit whole numbers."""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt

_BASE = 10_000
_DIGITS = 4
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_NEGATIVE = 0x4000
Words = npt.NDArray[np.uint64]


def numeric(words: Words, precision: int, scale: int) -> npt.NDArray[np.uint8]:
    """Return the cells of unscaled values, each given as its lower and its upper 64 bits.

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
    """Divide in place by the base, and return what is left over."""
    rest = np.zeros_like(limbs[0])
    for at in reversed(range(len(limbs))):
        current = (rest << _HALF) | limbs[at]
        limbs[at] = current // np.uint64(_BASE)
        rest = current - limbs[at] * np.uint64(_BASE)
    return rest
