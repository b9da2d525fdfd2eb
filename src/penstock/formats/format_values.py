"""What shape a value has (scalar, vector, table, mapping), and how a vector or table is cut into pieces.

Nothing is imported for plain Python values: a numpy, Arrow or pandas object can only be there when its
package has already been imported elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

from penstock.errors import FormatError


class Shape(Enum):
    """The four shapes that the formats know."""

    SCALAR = "scalar"
    VECTOR = "vector"
    TABLE = "table"
    MAPPING = "mapping"


_NUMBERS = (bool, int, float, complex, Decimal)
_TIMES = (datetime, date, time, timedelta)
_TEXTS = (str, bytes, bytearray, memoryview, UUID, IPv4Address, IPv6Address, type(None))
SCALARS: tuple[type, ...] = (*_NUMBERS, *_TIMES, *_TEXTS)
_SHAPES: dict[type, Shape] = {
    **dict.fromkeys(SCALARS, Shape.SCALAR),
    **dict.fromkeys((list, tuple), Shape.VECTOR),
    dict: Shape.MAPPING,
}
PANDAS_ARRAY = ("pandas.api.extensions", "ExtensionArray")
"""Categorical, nullable integers, text and the others of pandas' own arrays."""
_CLASSES: list[tuple[tuple[str, ...], Shape]] = [
    (("numpy", "generic"), Shape.SCALAR),
    (("pyarrow", "Scalar"), Shape.SCALAR),
    (("pyarrow", "Table", "RecordBatch", "RecordBatchReader"), Shape.TABLE),
    (("pyarrow", "Array", "ChunkedArray"), Shape.VECTOR),
    (("pandas", "DataFrame"), Shape.TABLE),
    (("pandas", "Series", "Index"), Shape.VECTOR),
    (PANDAS_ARRAY, Shape.VECTOR),
]
ALLOWED = (
    "a Python or numpy scalar, a list, an array (numpy, Arrow), "
    "a table (pandas, Arrow, polars, duckdb) or a mapping"
)


def shape(value: Any) -> Shape:
    """Return the shape of a value, or raise `FormatError`.

    >>> shape(1), shape([1, 2]), shape({"a": 1})
    (<Shape.SCALAR: 'scalar'>, <Shape.VECTOR: 'vector'>, <Shape.MAPPING: 'mapping'>)
    """
    value_shape = _shape(value)
    if value_shape is None:
        raise FormatError(f"{kind(value)} is not a value for a message; give {ALLOWED}")
    return value_shape


def rows(value: Any) -> int | None:
    """Count the elements of a vector or the rows of a table; None for what cannot be split.

    >>> rows([1, 2, 3]), rows("abc"), rows({"a": [1, 2]})
    (3, None, None)
    """
    value_shape = _shape(value)
    if value_shape not in (Shape.VECTOR, Shape.TABLE):
        return None
    # A matrix is one value. (A DataFrame has two dimensions, too, and is a table.)
    if value_shape is Shape.VECTOR and getattr(value, "ndim", 1) > 1:
        return None
    return len(value) if hasattr(type(value), "__len__") else getattr(value, "num_rows", None)


def cut(value: Any, start: int, stop: int) -> Any:
    """Return the elements or rows from `start` up to `stop`, as a value of the same kind.

    >>> cut([1, 2, 3], 1, 3)
    [2, 3]
    """
    if loaded(value, "pandas", "DataFrame", "Series"):
        return value.iloc[start:stop]
    if loaded(value, "pyarrow", "Array", "ChunkedArray", "Table", "RecordBatch"):
        return value.slice(start, stop - start)
    if hasattr(type(value), "__getitem__"):
        return value[start:stop]
    return cut(settle(value), start, stop)


def settle(value: Any) -> Any:
    """Read what can be read only once (a stream, a query) into an Arrow table; the rest stays as it is.

    Call it before `rows` and `cut`: a reader has no length, and a query would run again for each piece.
    """
    if _shape(value) is not Shape.TABLE or hasattr(type(value), "__getitem__"):
        return value
    import pyarrow as pa  # noqa: PLC0415 - an extra; there is a table only where it is installed

    return value.read_all() if isinstance(value, pa.RecordBatchReader) else pa.table(value)


def loaded(value: Any, package: str, *names: str) -> bool:
    """Return whether a value is of one of these classes of a package, without importing it."""
    module = sys.modules.get(package)
    classes = (getattr(module, name, None) for name in names) if module else ()
    return any(isinstance(each, type) and isinstance(value, each) for each in classes)


def kind(value: Any) -> str:
    """Name the type of a value for an error message: never the value, which may be secret.

    >>> kind(1.5)
    'float'
    """
    class_ = type(value)
    return f"{class_.__module__}.{class_.__name__}".removeprefix("builtins.")


def _shape(value: Any) -> Shape | None:
    if type(value) in _SHAPES:
        return _SHAPES[type(value)]
    if loaded(value, "numpy", "ndarray"):
        return Shape.VECTOR if value.ndim else Shape.SCALAR
    by_package = (value_shape for names, value_shape in _CLASSES if loaded(value, *names))
    return next(by_package, None) or _shape_by_interface(value)


def _shape_by_interface(value: Any) -> Shape | None:
    if isinstance(value, SCALARS) or type(value).__name__ == "NAType":
        return Shape.SCALAR
    if isinstance(value, Mapping):
        return Shape.MAPPING
    if isinstance(value, list | tuple):
        return Shape.VECTOR
    if hasattr(type(value), "__arrow_c_stream__"):
        # A series streams its one column; only a series has one type.
        return Shape.VECTOR if hasattr(value, "dtype") else Shape.TABLE
    return Shape.VECTOR if hasattr(type(value), "__arrow_c_array__") else None
