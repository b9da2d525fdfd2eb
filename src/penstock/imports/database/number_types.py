"""Numbers with declared digits as the smallest type that has room for them, where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from penstock.imports.database.table_range import SourceColumn

Numbers = Literal["exact", "whole", "best_fit"]
_WHOLE = ((3, pa.int8()), (5, pa.int16()), (10, pa.int32()), (19, pa.int64()))
"""Types with the number of digits that is too many for them."""


def fitted(column: SourceColumn, numbers: Numbers) -> SourceColumn:
    """Return a column with its numbers in the type that is asked for.

    >>> cents = SourceColumn("cents", pa.decimal128(9, 0), pa.array)
    >>> price = SourceColumn("price", pa.decimal128(8, 2), pa.array)
    >>> fitted(cents, "whole").type, fitted(price, "whole").type, fitted(price, "best_fit").type
    (DataType(int32), Decimal128Type(decimal128(8, 2)), DataType(double))
    """
    kind = _kind(column.type, numbers)
    if kind == column.type:
        return column
    return replace(column, type=kind, read=_cast(column.read, kind))


def _kind(kind: pa.DataType, numbers: Numbers) -> pa.DataType:
    if numbers == "exact" or not pa.types.is_decimal(kind):
        return kind
    if kind.scale == 0:
        return next((small for digits, small in _WHOLE if kind.precision < digits), kind)
    return pa.float64() if numbers == "best_fit" else kind


def _cast(read: Callable[[Any], pa.Array], kind: pa.DataType) -> Callable[[Any], pa.Array]:
    return lambda values: read(values).cast(kind)
