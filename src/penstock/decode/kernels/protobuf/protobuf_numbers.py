"""Numbers of Protobuf bodies as Arrow arrays: the raw words of a column, converted at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.protobuf.protobuf_scan import FIXED32, FIXED64, VARINT
from penstock.decode.kernels.protobuf.protobuf_wire import Bools
from penstock.decode.kernels.varint_words import Words


def _int32(words: Words) -> Any:
    return words.astype(np.uint32).view(np.int32)


def _uint32(words: Words) -> Any:
    return words.astype(np.uint32).astype(np.int64)


def _sint32(words: Words) -> Any:
    halves = words.astype(np.uint32)
    return ((halves >> np.uint32(1)) ^ (np.uint32(0) - (halves & np.uint32(1)))).view(np.int32)


def _int64(words: Words) -> Any:
    return words.view(np.int64)


def _sint64(words: Words) -> Any:
    return ((words >> np.uint64(1)) ^ (np.uint64(0) - (words & np.uint64(1)))).view(np.int64)


def _float(words: Words) -> Any:
    return words.astype(np.uint32).view(np.float32)


def _double(words: Words) -> Any:
    return words.view(np.float64)


def _bool(words: Words) -> Any:
    return words != 0


def _decimal(words: Words) -> pa.Array:
    limbs = np.zeros((len(words), 2), np.uint64)
    limbs[:, 0] = words
    buffers = [None, pa.py_buffer(limbs)]
    return pa.Array.from_buffers(pa.decimal128(20, 0), len(words), buffers)


NUMBERS: dict[str, tuple[int, Callable[[Words], Any]]] = {
    "int32": (VARINT, _int32),
    "uint32": (VARINT, _uint32),
    "sint32": (VARINT, _sint32),
    "int64": (VARINT, _int64),
    "uint64": (VARINT, _decimal),
    "sint64": (VARINT, _sint64),
    "bool": (VARINT, _bool),
    "enum": (VARINT, _int32),
    "fixed32": (FIXED32, _uint32),
    "sfixed32": (FIXED32, _int32),
    "float": (FIXED32, _float),
    "fixed64": (FIXED64, _decimal),
    "sfixed64": (FIXED64, _int64),
    "double": (FIXED64, _double),
}
"""The wire type of each kind of number, and its values from the raw words."""


def number_array(kind: str, words: Words) -> pa.Array:
    """Return the numbers of a column.

    >>> number_array("sint32", np.array([0, 1, 2, 3], np.uint64)).to_pylist()
    [0, -1, 1, -2]
    """
    return pa.array(NUMBERS[kind][1](words))


def enum_array(names: dict[int, str], words: Words) -> pa.Array:
    """Return the names of an enum's values, or their numbers where they have no name.

    >>> enum_array({0: "BUY"}, np.array([0, 7], np.uint64)).to_pylist()
    ['BUY', '7']
    """
    codes = number_array("int32", words).dictionary_encode()
    texts = [names.get(number) or str(number) for number in codes.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(codes.indices)


def seconds_array(seconds: pa.Array, nanos: pa.Array) -> pa.Array:
    """Return durations in seconds, exact to the nanosecond.

    >>> seconds_array(pa.array([-1]), pa.array([-5], pa.int32())).to_pylist()
    [Decimal('-1.000000005')]
    """
    limbs = np.empty((len(nanos), 2), np.int64)
    limbs[:, 0] = nanos.to_numpy()
    limbs[:, 1] = limbs[:, 0] >> 63
    wide = pa.decimal128(28, 9)
    parts = pa.Array.from_buffers(wide, len(nanos), [None, pa.py_buffer(limbs)])
    return pc.add(seconds.cast(wide), parts).cast(pa.decimal128(21, 9))


def with_nulls(array: pa.Array, exists: Bools | None) -> pa.Array:
    """Return an array that is not nested, with nulls where values are not set."""
    if exists is None or bool(exists.all()):
        return array
    bitmap = pa.array(exists, pa.bool_()).buffers()[1]
    buffers = [bitmap, *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)
