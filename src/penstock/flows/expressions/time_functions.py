"""Functions over times. A time has a zone; one without is taken as UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime, timedelta, timezone
from typing import Any

from penstock.errors import nearest
from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.function_table import as_number, as_text, function
from penstock.flows.expressions.operators import is_number
from penstock.flows.expressions.value_text import kind_of

_UNITS = {
    "milliseconds": 0.001,
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "weeks": 604800.0,
}
_FORM = re.compile(r"(?:[^%]|%[YmdHMSfjzypIBbAa%])*")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _system_time() -> datetime:
    return datetime.now(timezone.utc)


clock: ContextVar[Callable[[], datetime]] = ContextVar("clock", default=_system_time)
"""What `now()` returns; tests of flows give a fixed time."""


@function("now()", "the time now", "now() > parse_time('2024-01-01')")
def _now() -> datetime:
    return clock.get()()


@function(
    "parse_time(text[, form])",
    "the time of a text in ISO 8601, or in a form of strptime",
    "text(parse_time('2024-05-01T12:00:00+02:00')) = '2024-05-01T10:00:00Z'",
    "text(parse_time('01.05.2024', '%d.%m.%Y')) = '2024-05-01T00:00:00Z'",
)
def _parse_time(value: Any, form: Any = None) -> datetime:
    text = as_text(value)
    pattern = "" if form is None else _form(form)
    try:
        if not pattern:
            found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        else:
            found = datetime.strptime(text, pattern)
    except ValueError:
        wanted = "ISO 8601" if form is None else f"the form {as_text(form)[:40]!r}"
        raise ExpressionError(f"{text[:40]!r} is not a time in {wanted}") from None
    try:
        return (
            found.astimezone(timezone.utc) if found.tzinfo else found.replace(tzinfo=timezone.utc)
        )
    except OverflowError:
        raise ExpressionError(f"{text[:40]!r} is out of range (years 1 to 9999 of UTC)") from None


@function(
    "format_time(time, form)",
    "a time in a form of strftime, in UTC",
    "format_time(parse_time('2024-05-01'), '%Y/%m') = '2024/05'",
)
def _format_time(value: Any, form: Any) -> str:
    return _as_time(value).astimezone(timezone.utc).strftime(_form(form))


@function(
    "add_time(time, number, unit)",
    "a later time; the units are milliseconds to weeks",
    "add_time('2024-05-01', 1, 'days') = parse_time('2024-05-02')",
)
def _add_time(value: Any, number: Any, unit: Any) -> datetime:
    try:
        return _as_time(value) + timedelta(seconds=as_number(number) * _unit(unit))
    except OverflowError:
        raise ExpressionError("the time is out of range (years 1 to 9999)") from None


@function(
    "time_between(from, to, unit)",
    "how much later the second time is",
    "time_between('2024-05-01', '2024-05-02', 'hours') = 24",
)
def _time_between(start: Any, end: Any, unit: Any) -> float:
    return (_as_time(end) - _as_time(start)).total_seconds() / _unit(unit)


@function("epoch_ms(time)", "milliseconds since 1970", "epoch_ms('1970-01-01T00:00:01Z') = 1000")
def _epoch_ms(value: Any) -> int:
    return (_as_time(value) - _EPOCH) // timedelta(milliseconds=1)


@function(
    "from_epoch_ms(number)",
    "the time of milliseconds since 1970",
    "text(from_epoch_ms(1000)) = '1970-01-01T00:00:01Z'",
)
def _from_epoch_ms(value: Any) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=as_number(value))
    except OverflowError:
        raise ExpressionError("the time is out of range (years 1 to 9999)") from None


def _as_time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        found: datetime = _parse_time(value)
        return found
    hint = "; from_epoch_ms(...) makes one" if is_number(value) else ""
    raise ExpressionError(f"takes a time, given {kind_of(value)}{hint}")


def _unit(value: Any) -> float:
    text = as_text(value)
    if text not in _UNITS:
        raise ExpressionError(f"{text[:40]!r} is not a unit; {nearest(text[:40], [*_UNITS])}")
    return _UNITS[text]


def _form(value: Any) -> str:
    text = as_text(value)
    if not _FORM.fullmatch(text) or len(text) > 200:
        raise ExpressionError(
            f"{text[:40]!r} is not a form of a time; write it as %Y-%m-%d %H:%M:%S"
        )
    return text
