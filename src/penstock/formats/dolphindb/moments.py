"""Between Python's dates and times and DolphinDB's numbers, for one value at a time."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from penstock.errors import FormatError
from penstock.formats.dolphindb import scalars
from penstock.formats.dolphindb.types import Type

_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = _EPOCH.toordinal()
_MICRO = timedelta(microseconds=1)
_MICROS = 10**6
# How many microseconds one of DolphinDB's units is.
_UNIT = {
    "TIME": 1000,
    "SECOND": _MICROS,
    "MINUTE": 60 * _MICROS,
    "DATEHOUR": 3600 * _MICROS,
    "DATEMINUTE": 60 * _MICROS,
    "DATETIME": _MICROS,
    "TIMESTAMP": 1000,
}
_CLASSES: dict[str, Any] = {
    "TIME": scalars.Time,
    "SECOND": scalars.Second,
    "MINUTE": scalars.Minute,
    "DATEHOUR": scalars.DateHour,
    "DATEMINUTE": scalars.DateMinute,
    "DATETIME": scalars.DateTime,
    "TIMESTAMP": scalars.Timestamp,
    "NANOTIME": time,
    "NANOTIMESTAMP": datetime,
}
NAMES = frozenset((*_CLASSES, "DATE", "MONTH"))


def to_python(found: Type, raw: int) -> Any:
    """Give the date, time or datetime of a number, or raise for what Python cannot hold."""
    check_limit(found, raw)
    try:
        return _to_python(found.name, raw)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{found.name} {raw} is outside Python's years 1 to 9999") from error


def to_number(found: Type, value: Any) -> int:
    """Give DolphinDB's number of a date, time or datetime, or raise where a part of it would be lost."""
    refuse_zone(found.name, value)
    if found.name == "MONTH":
        return int(value.year * 12 + value.month - 1)
    if found.name == "DATE":
        return int(value.toordinal() - _FIRST_DAY)
    if isinstance(value, np.datetime64):
        return int(value.astype("M8[ns]").astype(np.int64))
    if isinstance(value, scalars.NanoTime):
        check_limit(found, value)
        return int(value)
    number = _number(found.name, _micros(value))
    check_limit(found, number)
    return number


def refuse_zone(name: str, value: Any) -> None:
    """Refuse a time with a zone: DolphinDB's are local times, and a zone would be lost."""
    if getattr(value, "tzinfo", None) is not None:
        raise FormatError(
            f"{name} has no time zone: give the local time, e.g. value.replace(tzinfo=None)"
        )


def check_limit(found: Type, raw: int) -> None:
    """Refuse a time of day that is none."""
    if found.limit is not None and not 0 <= raw < found.limit:
        raise FormatError(f"{found.name} {raw} is no time of day; allowed: 0 to {found.limit - 1}")


def _number(name: str, micros: int) -> int:
    if name.startswith("NANO"):
        return micros * 1000
    number, rest = divmod(micros, _UNIT[name])
    if rest:
        raise FormatError(f"{name} cannot hold the smaller units of this value; round it first")
    return number


def _micros(value: datetime | time) -> int:
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICRO
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * _MICROS + value.microsecond


def _to_python(name: str, raw: int) -> Any:
    if name == "DATE":
        return date.fromordinal(raw + _FIRST_DAY)
    if name == "MONTH":
        return scalars.Month(raw // 12, raw % 12 + 1, 1)
    if name.startswith("NANO") and raw % 1000:
        return scalars.NanoTime(raw) if name == "NANOTIME" else np.datetime64(raw, "ns")
    micros = raw // 1000 if name.startswith("NANO") else raw * _UNIT[name]
    made = _CLASSES[name]
    return _clock(made, micros) if issubclass(made, time) else _moment(made, micros)


def _clock(made: type[time], micros: int) -> time:
    seconds, rest = divmod(micros, _MICROS)
    return made(seconds // 3600, seconds // 60 % 60, seconds % 60, rest)


def _moment(made: type[datetime], micros: int) -> datetime:
    return made(1970, 1, 1) + timedelta(microseconds=micros)
