"""The types of SQLAlchemy and of Python's values as Arrow's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import sqlalchemy as sa

from penstock.imports.database.text_columns import decimal_type

_TYPES: tuple[tuple[type, pa.DataType], ...] = (
    (bool, pa.bool_()),
    (int, pa.int64()),
    (float, pa.float64()),
    (bytes, pa.binary()),
    (datetime, pa.timestamp("us")),
    (date, pa.date32()),
)


def declared_type(declared: Any) -> pa.DataType | None:
    """Return the type for one of SQLAlchemy's; None where the values decide."""
    if isinstance(declared, sa.Numeric) and not isinstance(declared, sa.Float):
        if declared.precision is None:
            return pa.string()
        return decimal_type(declared.precision, declared.scale or 0)
    if isinstance(declared, sa.DateTime) and declared.timezone:
        return pa.timestamp("us", "UTC")
    kinds = (
        (sa.Boolean, pa.bool_()), (sa.Integer, pa.int64()), (sa.Float, pa.float64()),
        (sa.DateTime, pa.timestamp("us")), (sa.Date, pa.date32()), (sa.LargeBinary, pa.binary()),
        (sa.String, pa.string()),
    )  # fmt: skip
    return next((type_ for kind, type_ in kinds if isinstance(declared, kind)), None)


def seen_type(values: list[Any]) -> pa.DataType:
    """Return the type for some values; text where they have several types."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) != 1:
        return pa.string()
    kind = kinds.pop()
    aware = kind is datetime and any(value is not None and value.tzinfo for value in values)
    if aware:
        return pa.timestamp("us", "UTC")
    return next((type_ for each, type_ in _TYPES if kind is each), pa.string())


def reading(type_: pa.DataType) -> Any:
    """Return what makes a column of values."""
    return _texts if pa.types.is_string(type_) else partial(pa.array, type=type_)


def _texts(values: Sequence[Any]) -> pa.Array:
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        return msgspec.json.encode(value).decode()
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return f"{value.total_seconds()} s" if isinstance(value, timedelta) else str(value)
