"""Columns with a place for each record: what a key or value became, and the records that failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.outcome import Failure

UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)
"""What Arrow and our own checks raise for a value that does not fit."""
OUT_OF_RANGE = "OutOfRange"


@dataclass(frozen=True)
class Aligned:
    """A value for each record, null where it failed."""

    values: pa.Array
    failures: Sequence[Failure] = ()


def scattered(
    values: pa.Array, places: Sequence[int] | np.ndarray[Any, Any], size: int
) -> pa.Array:
    """Return a column of a size that has values at some places, and nulls at the others.

    >>> scattered(pa.array(["a", "b"]), [2, 0], 3).to_pylist()
    ['b', None, 'a']
    """
    if len(values) == size and np.array_equal(places, np.arange(size)):
        return values
    indexes = np.full(size, -1)
    indexes[np.asarray(places, np.int64)] = np.arange(len(values))
    return values.take(pa.array(indexes, mask=indexes < 0))


def moved(
    failures: Sequence[Failure], places: Sequence[int] | np.ndarray[Any, Any]
) -> list[Failure]:
    """Return failures of some records with their places among all."""
    return [replace(each, index=int(places[each.index])) for each in failures]


def converted(
    column: pa.Array, convert: Callable[[pa.Array], pa.Array], empty: pa.Array
) -> Aligned:
    """Convert a whole column; where that fails, find the records that do not fit, by halves.

    >>> made = converted(pa.array(["1", "x"]), lambda each: each.cast("int8"), pa.nulls(0, "int8"))
    >>> made.values.to_pylist(), made.failures[0].index
    ([1, None], 1)
    """
    try:
        return Aligned(convert(column))
    except UNFIT as error:
        if len(column) == 1:
            return Aligned(pa.nulls(1, empty.type), [Failure(0, OUT_OF_RANGE, str(error))])
    middle = len(column) // 2
    first = converted(column.slice(0, middle), convert, empty)
    second = converted(column.slice(middle), convert, empty)
    later = [replace(each, index=each.index + middle) for each in second.failures]
    return Aligned(pa.concat_arrays([first.values, second.values]), [*first.failures, *later])
