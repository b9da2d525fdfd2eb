"""Readers of Avro's scalar types: all lanes at once, into the array of one column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.avro.byte_spans import Convert, Spans, fixed_spans, read_spans
from penstock.decode.kernels.avro.lanes import Lanes, Numbers
from penstock.decode.kernels.avro.varints import read_longs

_FIRST_DAY, _LAST_DAY = -719162, 2932896
_DAY_MS = 86_400_000
_DTYPES: dict[pa.DataType, Any] = {
    pa.bool_(): np.bool_,
    pa.int32(): np.int32,
    pa.date32(): np.int32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}
Raw = Callable[[Lanes], "np.ndarray[Any, Any]"]


class Column(ABC):
    """Reads one value in each lane. `size` is the number of its bytes where that is always the same."""

    type: pa.DataType
    size: int | None = None

    @abstractmethod
    def read(self, lanes: Lanes) -> pa.Array:
        """Return the values, and move the lanes past them; values of refused lanes mean nothing."""

    @abstractmethod
    def skip(self, lanes: Lanes) -> None:
        """Move the lanes past the value; only what is needed for that is checked."""


def _ints(lanes: Lanes) -> Numbers:
    numbers = read_longs(lanes)
    lanes.refuse((numbers < -(2**31)) | (numbers >= 2**31))
    return numbers


def _floats(lanes: Lanes) -> np.ndarray[Any, Any]:
    words = lanes.batch.words[lanes.at]
    lanes.move(4)
    numbers: np.ndarray[Any, Any] = words.astype(np.uint32).view(np.float32)
    return numbers


def _doubles(lanes: Lanes) -> np.ndarray[Any, Any]:
    words = lanes.batch.words[lanes.at]
    lanes.move(8)
    numbers: np.ndarray[Any, Any] = words.view(np.float64)
    return numbers


def _booleans(lanes: Lanes) -> np.ndarray[Any, Any]:
    flags = lanes.batch.data[lanes.at]
    lanes.move(1)
    lanes.refuse(flags > 1)
    return flags


NUMBERS: dict[str, tuple[Raw, int | None]] = {
    "boolean": (_booleans, 1),
    "int": (_ints, None),
    "long": (read_longs, None),
    "float": (_floats, 4),
    "double": (_doubles, 8),
}
"""How a number of a written type is read, and its size where that is fixed."""


@dataclass(frozen=True)
class Range:
    """The numbers that a logical type allows, and what they are multiplied with."""

    first: int
    last: int
    factor: int = 1


RANGES = {
    ("int", "date"): Range(_FIRST_DAY, _LAST_DAY),
    ("int", "time-millis"): Range(0, _DAY_MS - 1),
    ("long", "time-micros"): Range(0, _DAY_MS * 1000 - 1),
    **{
        ("long", f"{prefix}timestamp-{unit}"): Range(
            _FIRST_DAY * _DAY_MS * parts, (_LAST_DAY + 1) * _DAY_MS * parts - 1, 1000 // parts
        )
        for prefix in ("", "local-")
        for unit, parts in (("millis", 1), ("micros", 1000))
    },
}
"""By type and logical type of what is wanted. Years are 1 to 9999."""


@dataclass
class NumberColumn(Column):
    """Numbers, booleans, dates and times."""

    type: pa.DataType
    written: str
    allowed: Range | None = None
    raw: Raw = field(init=False)

    def __post_init__(self) -> None:
        self.raw, self.size = NUMBERS[self.written]

    def read(self, lanes: Lanes) -> pa.Array:
        """Return the numbers."""
        numbers = self.raw(lanes)
        if self.allowed is not None:
            lanes.refuse((numbers < self.allowed.first) | (numbers > self.allowed.last))
            numbers = numbers if self.allowed.factor == 1 else numbers * self.allowed.factor
        return self._array(numbers)

    def skip(self, lanes: Lanes) -> None:
        """Move past a number."""
        if self.size is None:
            read_longs(lanes)
        else:
            lanes.move(self.size)

    def _array(self, numbers: np.ndarray[Any, Any]) -> pa.Array:
        dtype = _DTYPES.get(self.type, np.int64)
        if dtype is np.bool_:
            return pa.array(numbers.astype(np.bool_))
        if dtype is np.float32 and numbers.dtype == np.int64:
            # In two steps, as the reader of single values: a Python float is rounded to 32 bits.
            numbers = numbers.astype(np.float64)
        made = numbers.astype(dtype, copy=False)
        return pa.Array.from_buffers(self.type, len(made), [None, pa.py_buffer(made)])


@dataclass
class SpanColumn(Column):
    """Bytes, text and what is written as one of them."""

    type: pa.DataType
    convert: Convert
    size: int | None = None
    spans: Spans = field(init=False)

    def __post_init__(self) -> None:
        self.spans = read_spans if self.size is None else fixed_spans(self.size)

    def read(self, lanes: Lanes) -> pa.Array:
        """Return the values of the spans."""
        return self.convert(lanes, *self.spans(lanes))

    def skip(self, lanes: Lanes) -> None:
        """Move past the span."""
        self.spans(lanes)


class EnumColumn(Column):
    """Symbols by their number; None stands for one that is not wanted and has no replacement."""

    type = pa.string()

    def __init__(self, symbols: Sequence[str | None]) -> None:
        self._count = len(symbols)
        # The number 0 is read in place of a wrong one: there must be something, also without symbols.
        known = symbols or [None]
        self._symbols = pa.array(known, pa.string())
        self._refused = np.array([symbol is None for symbol in known], np.bool_)

    def read(self, lanes: Lanes) -> pa.Array:
        """Return the symbols."""
        number = read_longs(lanes)
        wrong = (number < 0) | (number >= self._count)
        number = np.where(wrong, 0, number)
        lanes.refuse(wrong | self._refused[number])
        return self._symbols.take(pa.array(number))

    def skip(self, lanes: Lanes) -> None:
        """Move past the number of a symbol."""
        read_longs(lanes)


class DurationColumn(Column):
    """Months, days and milliseconds, each a number of 32 bits without a sign."""

    size = 12
    type = pa.struct([(name, pa.int64()) for name in ("months", "days", "millis")])

    def read(self, lanes: Lanes) -> pa.Array:
        """Return the three numbers as a struct."""
        start = lanes.at
        lanes.move(self.size)
        words = [lanes.batch.words[start + place].astype(np.uint32) for place in (0, 4, 8)]
        parts = [pa.array(word.astype(np.int64)) for word in words]
        return pa.StructArray.from_arrays(parts, fields=list(self.type))

    def skip(self, lanes: Lanes) -> None:
        """Move past the numbers."""
        lanes.move(self.size)


class NullColumn(Column):
    """Nothing: no bytes, and a null in each lane."""

    size = 0

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_

    def read(self, lanes: Lanes) -> pa.Array:
        """Return nulls."""
        return pa.nulls(len(lanes), self.type)

    def skip(self, lanes: Lanes) -> None:
        """Move nothing: a null takes no bytes."""


class RefusedColumn(NullColumn):
    """A value that cannot be read: its record is bad."""

    def read(self, lanes: Lanes) -> pa.Array:
        """Refuse all lanes."""
        self.skip(lanes)
        return super().read(lanes)

    def skip(self, lanes: Lanes) -> None:
        """Refuse all lanes."""
        lanes.refuse(np.ones(len(lanes), np.bool_))
