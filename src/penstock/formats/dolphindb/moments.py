"""Between Python's dates and times and DolphinDB's numbers, for one value at a time."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from penstock.errors import FormatError
from penstock.formats.dolphindb import scalars
from penstock.formats.dolphindb.dolphindb_types import Type

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
_CLASSES: dict[str, Any] = {**scalars.CLASSES, "NANOTIME": time, "NANOTIMESTAMP": datetime}
NAMES = frozenset((*_UNIT, "NANOTIME", "NANOTIMESTAMP", "DATE", "MONTH"))


def to_python(type_: Type, raw: int) -> Any:
    """Return the date, time or datetime of a number, or raise for what Python cannot hold."""
    _check_limit(type_, raw)
    try:
        return _to_python(type_.name, raw)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{type_.name} {raw} is outside Python's years 1 to 9999") from error


def to_number(type_: Type, value: Any) -> int:
    """Return DolphinDB's number of a date, time or datetime, or raise if a part of it would be lost."""
    refuse_zone(type_.name, value)
    if type_.name == "MONTH":
        return int(value.year * 12 + value.month - 1)
    if type_.name == "DATE":
        return int(value.toordinal() - _FIRST_DAY)
    if isinstance(value, np.datetime64):
        return int(value.astype("M8[ns]").astype(np.int64))
    if isinstance(value, scalars.NanoTime):
        _check_limit(type_, value)
        return int(value)
    number = _number(type_.name, _micros(value))
    _check_limit(type_, number)
    return number


def refuse_zone(name: str, value: Any) -> None:
    """Refuse a time with a zone: DolphinDB's are local times, and a zone would be lost."""
    if getattr(value, "tzinfo", None) is not None:
        raise FormatError(
            f"{name} has no time zone: give the local time, e.g. value.replace(tzinfo=None)"
        )


def _check_limit(type_: Type, raw: int) -> None:
    if type_.limit is not None and not 0 <= raw < type_.limit:
        raise FormatError(
            f"{type_.name} {raw} is not a time of day; allowed: 0 to {type_.limit - 1}"
        )


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
    if issubclass(made, datetime):
        return made(1970, 1, 1) + timedelta(microseconds=micros)
    seconds, rest = divmod(micros, _MICROS)
    return made(seconds // 3600, seconds // 60 % 60, seconds % 60, rest)
