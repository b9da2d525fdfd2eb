"""What numpy, pandas and Arrow hold, as values that orjson writes: whole columns at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import orjson

from penstock.errors import FormatError
from penstock.formats.format_values import PANDAS_ARRAY, Shape, kind, loaded

_PLAIN_NUMBERS = "biuf"
# Made once: these are asked for every value.
_LISTS = (list, tuple)
_MAPPINGS = (dict, Mapping)
_FINITE = frozenset((str, int, bool, type(None)))


def plain(value: Any, shape: Shape) -> Any:
    """Return a numpy scalar, a vector or a table as lists, objects and scalars that orjson knows."""
    if shape is Shape.TABLE:
        return table(value)
    if shape is Shape.VECTOR:
        return vector(value)
    if loaded(value, "pyarrow", "Scalar"):
        return value.as_py()
    if loaded(value, "numpy", "generic", "ndarray"):
        return numpy_array(value)
    raise FormatError(f"JSON cannot represent {kind(value)}; give it as text or a number")


def is_null(value: Any) -> bool:
    """Return whether a scalar is one of the nulls: NaN, NaT, pandas' NA."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    # A signalling NaN does not even compare.
    if isinstance(value, Decimal):
        return value.is_nan()
    is_number = not isinstance(value, Mapping) and not hasattr(type(value), "__len__")
    return is_number and isinstance(value != value, bool) and value != value  # noqa: PLR0124


def refuse_infinity(document: Any) -> None:
    """Refuse infinities in lists and objects, which orjson would silently write as null."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _LISTS):
            waiting += [each for each in value if type(each) not in _FINITE]
        elif isinstance(value, float):
            if math.isinf(value):
                raise FormatError("JSON has no infinity; send null or text instead")
        elif isinstance(value, _MAPPINGS):
            waiting += [each for each in value.values() if type(each) not in _FINITE]


def table(value: Any) -> dict[str, Any]:
    """Return a table by column."""
    if loaded(value, "pandas", "DataFrame"):
        return _by_name((str(name), _series(column)) for name, column in value.items())
    from penstock.formats.arrow.arrow_columns import column, to_table  # noqa: PLC0415

    arrow_table = to_table(value)
    return _by_name(
        (name, column(each))
        for name, each in zip(arrow_table.column_names, arrow_table.columns, strict=True)
    )


def vector(value: Any) -> Any:
    """Return a vector as a list, or as text that is already JSON."""
    if loaded(value, "numpy", "ndarray"):
        return numpy_array(value)
    if loaded(value, "pandas", "Series", "Index") or loaded(value, *PANDAS_ARRAY):
        return _series(value)
    from penstock.formats.arrow.arrow_columns import column, to_array  # noqa: PLC0415

    return column(to_array(value))


def numpy_array(value: Any) -> Any:
    """Return a numpy array or scalar; numbers are written by orjson straight from memory."""
    import numpy as np  # noqa: PLC0415

    if value.dtype.kind == "M":
        times = np.asarray(value)
        texts: Any = np.datetime_as_string(times).astype(object)
        return np.where(np.isnat(times), None, texts).tolist()  # type: ignore[attr-defined]
    if value.dtype.kind in "OU":
        return _checked(value.tolist())
    if value.dtype.kind not in _PLAIN_NUMBERS or value.dtype.itemsize > 8:
        raise FormatError(
            f"JSON cannot represent numpy's {value.dtype}; give it as text or numbers"
        )
    if value.dtype.kind == "f" and np.isinf(value).any():
        raise FormatError("JSON has no infinity; send null or text instead")
    native = np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")
    return orjson.Fragment(
        orjson.dumps(native if native.ndim else native[()], option=orjson.OPT_SERIALIZE_NUMPY)
    )


def _series(column: Any) -> Any:
    # Of pandas' own types, Int64 says "i" too, but holds nulls.
    is_numpy = hasattr(column.dtype, "newbyteorder")
    if is_numpy and column.dtype.kind in _PLAIN_NUMBERS:
        return numpy_array(column.to_numpy())
    return _checked(column.astype(object).tolist())


def _checked(items: Any) -> Any:
    refuse_infinity(items)
    return items


def _by_name(columns: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for name, column in columns:
        if name in by_name:
            raise FormatError(f"two columns are named {name!r}; JSON needs different names")
        by_name[name] = column
    return by_name
