"""Pieces of the bytes of a batch as Arrow arrays: bytes, text, decimals and UUIDs, all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.avro.lanes import Lanes, Mask, Numbers
from penstock.decode.kernels.avro.varints import read_longs

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
Spans: TypeAlias = Callable[[Lanes], tuple[Numbers, Numbers]]
"""Reads where a value starts and how long it is, in each lane."""
Convert: TypeAlias = Callable[[Lanes, Numbers, Numbers], pa.Array]
"""Makes an array of the spans of all lanes."""
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_HYPHENS = (8, 13, 18, 23)
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8)
# The client's reader refuses longer decimals, too.
_MOST_BYTES = 4000


def read_spans(lanes: Lanes) -> tuple[Numbers, Numbers]:
    """Read a length, and go past that many bytes; a refused lane has a length of zero."""
    length = read_longs(lanes)
    start = lanes.at
    wrong = (length < 0) | (length > lanes.end - start)
    if wrong.any():
        lanes.refuse(wrong)
        length = np.where(lanes.refused(), 0, length)
        start = lanes.at
    lanes.at = start + length
    return start, length


def fixed_spans(size: int) -> Spans:
    """Return the reader of values that are all of one size."""

    def read(lanes: Lanes) -> tuple[Numbers, Numbers]:
        start = lanes.at
        lanes.move(size)
        return start, np.where(lanes.refused(), 0, size)

    return read


def binary(lanes: Lanes, start: Numbers, length: Numbers) -> pa.Array:
    """Copy the bytes of each span.

    The spans are in order, and do not overlap: so they are every second value of an array over the same
    bytes, and the values between them are what is left out.
    """
    bounds = np.empty((len(start), 2), np.int64)
    bounds[:, 0] = np.where(length == 0, 0, start)
    bounds[:, 1] = bounds[:, 0] + length
    # A span without bytes may be anywhere: it is moved to the end of the one before.
    flat = np.maximum.accumulate(bounds.reshape(-1)).astype(np.int32)
    offsets = np.append(flat, flat[-1:] if len(flat) else np.zeros(1, np.int32))
    buffers = [None, pa.py_buffer(offsets), lanes.batch.buffer]
    whole = pa.Array.from_buffers(pa.binary(), len(flat), buffers)
    return whole.take(pa.array(np.arange(0, len(flat), 2, dtype=np.int32)))


def text(lanes: Lanes, start: Numbers, length: Numbers) -> pa.Array:
    """Copy the text of each span; a lane whose text is not UTF-8 is refused."""
    raw = binary(lanes, start, length)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        wrong = np.zeros(len(start), np.bool_)
        _mark_invalid(raw, 0, wrong)
        lanes.refuse(wrong)
        return binary(lanes, start, np.where(wrong, 0, length)).cast(pa.string())


def _mark_invalid(raw: pa.Array, first: int, wrong: Mask) -> None:
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        if len(raw) == 1:
            wrong[first] = True
            return
        half = len(raw) // 2
        _mark_invalid(raw.slice(0, half), first, wrong)
        _mark_invalid(raw.slice(half), first + half, wrong)


def text_as_binary(lanes: Lanes, start: Numbers, length: Numbers) -> pa.Array:
    """Copy the bytes of each text; it must be UTF-8 all the same."""
    return text(lanes, start, length).cast(pa.binary())


def text_first(convert: Convert) -> Convert:
    """Return a conversion of bytes that were written as text: they must be UTF-8 all the same."""

    def checked(lanes: Lanes, start: Numbers, length: Numbers) -> pa.Array:
        text(lanes, start, length)
        return convert(lanes, start, length)

    return checked


def uuid_text(lanes: Lanes, start: Numbers, length: Numbers) -> pa.Array:
    """Copy UUIDs in their text form; other spellings that Python reads are converted to it."""
    array = text(lanes, start, length)
    odd = np.flatnonzero(~_booleans(pc.match_substring_regex(array, _UUID)))
    if not len(odd):
        return array
    spelled = [_canonical(value) for value in array.take(pa.array(odd)).to_pylist()]
    wrong, mask = np.zeros((2, len(array)), np.bool_)
    mask[odd], wrong[odd] = True, [value is None for value in spelled]
    lanes.refuse(wrong)
    return pc.replace_with_mask(array, pa.array(mask), pa.array(spelled, pa.string()))


def _canonical(value: str) -> str | None:
    try:
        return str(UUID(value))
    except ValueError:
        return None


def _booleans(array: pa.Array) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask


def uuid_bytes(lanes: Lanes, start: Numbers, _length: Numbers) -> pa.Array:
    """Return the text form of UUIDs of 16 bytes."""
    raw = lanes.batch.data[_safe(lanes, start, 16)[:, None] + np.arange(16)]
    digits = _HEX.reshape(256, 2)[raw].reshape(len(start), 32)
    out = np.full((len(start), 36), ord("-"), np.uint8)
    out[:, [at for at in range(36) if at not in _HYPHENS]] = digits
    offsets = np.arange(0, 36 * len(start) + 1, 36, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(start), buffers)


def _safe(lanes: Lanes, start: Numbers, size: int) -> Numbers:
    """Return positions from which `size` bytes can be read: refused lanes may be at the very end."""
    return np.minimum(start, len(lanes.batch.data) - size)


def decimals(precision: int, scale: int) -> Convert:
    """Return the conversion of big-endian numbers to decimals; one with too many digits is refused."""
    type_ = pa.decimal128(precision, scale)
    bound = 10**precision
    high_bound, low_bound = np.uint64(bound >> 64), np.uint64(bound & (2**64 - 1))

    def convert(lanes: Lanes, start: Numbers, length: Numbers) -> pa.Array:
        little = _little_endian(lanes, start, length)
        low, signed_high = little.view("<u8").reshape(-1, 2).T
        negative = signed_high >> np.uint64(63) > 0
        high = np.where(negative, ~signed_high + (low == 0), signed_high)
        low = np.where(negative, ~low + np.uint64(1), low)
        lanes.refuse((high > high_bound) | ((high == high_bound) & (low >= low_bound)))
        return pa.Array.from_buffers(type_, len(start), [None, pa.py_buffer(little)])

    return convert


def _little_endian(lanes: Lanes, start: Numbers, length: Numbers) -> Bytes:
    """Return each big-endian number as 16 bytes, the lowest first."""
    data = lanes.batch.data
    sign = np.where((length > 0) & (data[start] > 0x7F), 0xFF, 0).astype(np.uint8)
    place = np.arange(16)
    used = place < length[:, None]
    index = np.where(used, (start + length)[:, None] - 1 - place, 0)
    little = np.where(used, data[index], sign[:, None])
    longer = np.flatnonzero(length > 16)
    if len(longer):
        lanes.refuse(_beyond(lanes, start, length, longer, little))
    return np.ascontiguousarray(little)


def _beyond(lanes: Lanes, start: Numbers, length: Numbers, longer: Numbers, little: Bytes) -> Mask:
    """Return which of the longer numbers do not fit in 16 bytes: leading bytes must repeat the sign."""
    wrong = np.zeros(len(start), np.bool_)
    for lane in longer.tolist():
        first, size = int(start[lane]), int(length[lane])
        sign = 0xFF if little[lane, 15] > 0x7F else 0
        leading = lanes.batch.data[first : first + size - 16]
        wrong[lane] = size > _MOST_BYTES or bool((leading != sign).any())
    return wrong
