"""DolphinDB's scalars as Python values: Python's own class where there is one, else a small subclass.

A subclass compares as its parent does (`Short(7) == 7`) and is written again as what it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from penstock.errors import FormatError

UNITS = ("ns", "us", "ms", "s", "min", "h", "d", "w", "month", "year", "business day")


class Char(int):
    """CHAR: a whole number of 8 bits."""


class Short(int):
    """SHORT: a whole number of 16 bits."""


class Int(int):
    """INT: a whole number of 32 bits (Python's own int is LONG)."""


class Float(float):
    """FLOAT: a number of 32 bits (Python's own float is DOUBLE)."""


class Symbol(str):
    """SYMBOL: text from a small set."""

    __slots__ = ()


class Month(date):
    """MONTH: the first day of it, shown as `2012-06`."""

    def isoformat(self) -> str:
        """Return year and month."""
        return f"{self.year:04}-{self.month:02}"

    __str__ = isoformat


class Minute(time):
    """MINUTE: a time of day without seconds."""


class Second(time):
    """SECOND: a time of day in whole seconds."""


class Time(time):
    """TIME: a time of day in milliseconds (Python's own time is NANOTIME)."""


class DateHour(datetime):
    """DATEHOUR: a whole hour of a day."""


class DateMinute(datetime):
    """DATEMINUTE: a whole minute of a day."""


class DateTime(datetime):
    """DATETIME: seconds, from 1901 to 2038."""


class Timestamp(datetime):
    """TIMESTAMP: milliseconds (Python's own datetime is NANOTIMESTAMP)."""


class NanoTime(int):
    """NANOTIME that Python's time cannot hold: nanoseconds since midnight."""

    def __str__(self) -> str:
        """Show the time of day."""
        seconds, rest = divmod(int(self), 10**9)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:09}"


class Int128(int):
    """INT128: 32 hexadecimal digits, as an unsigned number."""

    def __str__(self) -> str:
        """Show the digits, as DolphinDB does."""
        return f"{int(self):032x}"


class Decimal32(Decimal):
    """DECIMAL32: up to 9 digits."""


class Decimal64(Decimal):
    """DECIMAL64: up to 18 digits."""


class Decimal128(Decimal):
    """DECIMAL128: up to 38 digits."""


@dataclass(frozen=True)
class Point:
    """POINT: a place in the plane."""

    x: float
    y: float


@dataclass(frozen=True)
class Duration:
    """DURATION: a number of one unit.

    >>> str(Duration(3, "h"))
    '3 h'
    """

    count: int
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise FormatError(f"DURATION has no unit {self.unit!r}; allowed: {', '.join(UNITS)}")

    def __str__(self) -> str:
        return f"{self.count} {self.unit}"


@dataclass(frozen=True)
class Null:
    """A null that has a type: for writing, and as an item of an ANY vector that was read.

    A null that was read by itself is None.
    """

    type: str
    scale: int = 0


_OWN = (
    Char, Short, Int, Float, Symbol, Month, Minute, Second, Time, DateHour, DateMinute, DateTime,
    Timestamp, NanoTime, Int128, Decimal32, Decimal64, Decimal128, Point, Duration,
)  # fmt: skip
CLASSES: dict[str, Any] = {each.__name__.upper(): each for each in _OWN}
"""The class of each type for which Python has none, by DolphinDB's name."""


def address(number: int) -> IPv4Address | IPv6Address:
    """Return the address of a 128-bit number: one that fits IPv4 is IPv4, as DolphinDB has it."""
    return IPv4Address(number) if number < 2**32 else IPv6Address(number)


def _unit_name(unit: int) -> str:
    if not 0 <= unit < len(UNITS):
        raise FormatError(f"DURATION has no unit {unit}; allowed: 0 to {len(UNITS) - 1}")
    return UNITS[unit]


def _copy(moment: datetime, to: type[datetime]) -> datetime:
    return to(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)


# From a value of the Arrow type that is nearest to a DolphinDB type to its scalar. What reads an item of
# an ANY vector is added by `wire_reading`: such an item is a whole object again.
FROM_STORAGE: dict[str, Any] = {
    "MONTH": lambda day: Month(day.year, day.month, 1),
    "MINUTE": lambda clock: Minute(clock.hour, clock.minute),
    "DATEHOUR": lambda moment: _copy(moment, DateHour),
    "DATEMINUTE": lambda moment: _copy(moment, DateMinute),
    "IPADDR": lambda data: address(int.from_bytes(data, "big")),
    "INT128": lambda data: Int128(int.from_bytes(data, "big")),
    "COMPLEX": lambda twin: complex(*twin),
    "POINT": lambda twin: Point(*twin),
    "DURATION": lambda twin: Duration(twin[0], _unit_name(twin[1])),
}
