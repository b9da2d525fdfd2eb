"""Dates, instants, decimals and bytes written as text, one value at a time.

These functions are the meaning; the vectorised casts of the fast path accept no more than they do.
"""

from __future__ import annotations

import base64
import decimal
import re
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_INSTANT = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<hour>\d\d)(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?)?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def read_date(text: str) -> date:
    """Read `YYYY-MM-DD`.

    >>> read_date("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    if not (match := _DATE.fullmatch(text)):
        raise ValueError("a date is written YYYY-MM-DD")
    return date(*map(int, match.groups()))


def read_instant(text: str) -> datetime:
    """Read an ISO-8601 instant; without a zone it is UTC.

    >>> read_instant("2024-01-01T02:00:00.5+02:00").isoformat()
    '2024-01-01T00:00:00.500000+00:00'
    """
    local, zone = _local_time(text)
    try:
        return (local - _offset(zone)).replace(tzinfo=timezone.utc)
    except OverflowError:
        raise ValueError("years are 0001 to 9999 in UTC") from None


def read_local_time(text: str) -> datetime:
    """Read an ISO-8601 date and time that must not name a zone.

    >>> read_local_time("2024-01-01 10:00:00").isoformat()
    '2024-01-01T10:00:00'
    """
    local, zone = _local_time(text)
    if zone:
        raise ValueError(f"a timestamp_ntz has no zone, found {zone!r}: declare timestamp")
    return local


def read_decimal(text: str, precision: int, scale: int) -> Decimal:
    """Read a number exactly, or raise when it needs more digits than declared.

    >>> read_decimal("1.50", 5, 1)
    Decimal('1.5')
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError("a decimal is a number, or text that holds one")
    lossy = [decimal.Inexact, decimal.InvalidOperation]
    exact = decimal.Context(precision, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=lossy)
    try:
        return Decimal(text, exact).quantize(Decimal(1).scaleb(-scale), context=exact)
    except decimal.Inexact:
        raise ValueError(f"at most {scale} digits are allowed after the point") from None
    except decimal.DecimalException:
        whole = precision - scale
        raise ValueError(f"at most {whole} digits are allowed before the point") from None


def read_base64(text: str) -> bytes:
    """Read bytes from base64 text."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"binary is base64 text ({error})") from None


def _local_time(text: str) -> tuple[datetime, str | None]:
    if not (match := _INSTANT.fullmatch(text)):
        raise ValueError("a timestamp is written YYYY-MM-DDThh:mm:ss[.ffffff][Z or +hh:mm]")
    day = read_date(match["date"])
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    clock = time(hour, minute, second, _micros(match["fraction"]))
    return datetime.combine(day, clock), match["zone"]


def _micros(fraction: str | None) -> int:
    digits = (fraction or "").ljust(6, "0")
    if digits[6:].strip("0"):
        raise ValueError(f"a timestamp has at most 6 digits after the second, found {len(digits)}")
    return int(digits[:6])


def _offset(zone: str | None) -> timedelta:
    if not zone or zone == "Z":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"a zone is at most 23:59 from UTC, found {zone!r}")
    size = timedelta(hours=hours, minutes=minutes)
    return -size if zone[0] == "-" else size
