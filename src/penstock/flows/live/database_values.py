"""Values of databases as those of a message: what JSON has, times and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any
from uuid import UUID


def plain_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row with values that expressions and JSON have.

    >>> plain_row({"a": Decimal("1.50"), "b": Decimal("7"), "c": date(2024, 5, 1)})
    {'a': 1.5, 'b': 7, 'c': '2024-05-01'}
    """
    return {str(name): _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:  # noqa: PLR0911 - a table
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    if isinstance(value, date | time_of_day):
        return value.isoformat()
    if isinstance(value, timedelta | UUID):
        return str(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return plain_row(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _number(value: Decimal) -> Any:
    """Return a number where it is exactly this one, otherwise the digits as text.

    >>> _number(Decimal("0.1")), _number(Decimal("0.12345678901234567890"))
    (0.1, '0.12345678901234567890')
    """
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)
