"""Moments as text, as Java's SimpleDateFormat writes them in UTC with English names.

Years before 1582 are those of the calendar that Spark has (proleptic Gregorian); Java's are Julian.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.steps.connect_transforms.date_pattern import DAYS, MONTHS, Token, tokens

MILLIS_OF_DAY = 86_400_000


def date_text(millis: Column, pattern: str) -> Column:
    """Return the text of a moment, given in milliseconds since 1970, by a pattern."""
    moment = _Moment(millis)
    pieces = [
        f.lit(each.text) if not each.letter else moment.field(each) for each in tokens(pattern)
    ]
    return f.concat(*pieces) if pieces else f.when(millis.isNotNull(), f.lit(""))


def day_of(millis: Column) -> Column:
    """Return the day, as a number since 1970."""
    whole = millis - f.pmod(millis, f.lit(MILLIS_OF_DAY))
    return (whole / f.lit(MILLIS_OF_DAY)).cast("int")


def as_date(millis: Column) -> Column:
    """Return the day, as a date."""
    return f.date_add(f.lit(date(1970, 1, 1)), day_of(millis))


class _Moment:
    """The fields of a moment."""

    def __init__(self, millis: Column) -> None:
        self._millis = millis
        self._date = as_date(millis)
        self._of_day = f.pmod(millis, f.lit(MILLIS_OF_DAY))

    def field(self, token: Token) -> Column:
        """Return the text of one field."""
        return _WRITERS[token.letter](self, token.count)

    def _part(self, unit: int, parts: int) -> Column:
        """Return the hours, minutes, seconds or milliseconds of the time of the day."""
        passed = self._of_day - f.pmod(self._of_day, f.lit(unit))
        return f.pmod((passed / f.lit(unit)).cast("int"), f.lit(parts))

    @property
    def hour(self) -> Column:
        return self._part(3_600_000, 24)

    def year(self, count: int) -> Column:
        return _year(f.year(self._date), count)

    def month(self, count: int) -> Column:
        number = f.month(self._date)
        return _padded(number, count) if count <= 2 else _name(MONTHS, number, count)

    def weekday(self, count: int) -> Column:
        return _name(DAYS, f.dayofweek(self._date), count)

    def half(self, _: int) -> Column:
        return f.when(self.hour < 12, f.lit("AM")).otherwise(f.lit("PM"))

    def week_of_year(self, count: int) -> Column:
        return _padded(f.when(self._in_next_year, f.lit(1)).otherwise(self._week), count)

    def week_year(self, count: int) -> Column:
        return _year(f.year(self._date) + self._in_next_year.cast("int"), count)

    @property
    def _week(self) -> Column:
        first = f.dayofweek(f.trunc(self._date, "year"))
        return f.floor((f.dayofyear(self._date) + first - 2) / 7).cast("int") + 1

    @property
    def _in_next_year(self) -> Column:
        """Return whether the week, which begins on Sunday, has the first day of the next year."""
        saturday = f.date_add(self._date, 7 - f.dayofweek(self._date))
        return f.year(saturday) > f.year(self._date)

    def week_of_month(self, count: int) -> Column:
        first = f.dayofweek(f.trunc(self._date, "month"))
        return _padded(f.floor((f.dayofmonth(self._date) + first - 2) / 7).cast("int") + 1, count)


def _year(year: Column, count: int) -> Column:
    return _padded(f.pmod(year, f.lit(100)), 2) if count == 2 else _padded(year, count)


def _name(names: tuple[str, ...], number: Column, count: int) -> Column:
    shown = names if count >= 4 else tuple(name[:3] for name in names)
    return f.element_at(f.array(*map(f.lit, shown)), number)


def _padded(number: Column, count: int) -> Column:
    """Return a number with at least that many digits."""
    text = number.cast("string")
    return (
        text if count == 1 else f.lpad(text, f.greatest(f.length(text), f.lit(count)), f.lit("0"))
    )


def _number(value: Callable[[_Moment], Column]) -> Callable[[_Moment, int], Column]:
    return lambda moment, count: _padded(value(moment), count)


def _text(short: str, long: str | None = None) -> Callable[[_Moment, int], Column]:
    return lambda _, count: f.lit(long if long and count >= 4 else short)


def _or(number: Column, zero: int) -> Column:
    return f.when(number == 0, f.lit(zero)).otherwise(number)


_WRITERS: dict[str, Callable[[_Moment, int], Column]] = {
    "G": _text("AD"),
    "y": _Moment.year,
    "Y": _Moment.week_year,
    "M": _Moment.month,
    "L": _Moment.month,
    "w": _Moment.week_of_year,
    "W": _Moment.week_of_month,
    "D": _number(lambda m: f.dayofyear(m._date)),
    "d": _number(lambda m: f.dayofmonth(m._date)),
    "F": _number(lambda m: f.floor((f.dayofmonth(m._date) - 1) / 7).cast("int") + 1),
    "E": _Moment.weekday,
    "u": _number(lambda m: f.pmod(f.dayofweek(m._date) - 2, f.lit(7)) + 1),
    "a": _Moment.half,
    "H": _number(lambda m: m.hour),
    "k": _number(lambda m: _or(m.hour, 24)),
    "K": _number(lambda m: f.pmod(m.hour, f.lit(12))),
    "h": _number(lambda m: _or(f.pmod(m.hour, f.lit(12)), 12)),
    "m": _number(lambda m: m._part(60_000, 60)),
    "s": _number(lambda m: m._part(1000, 60)),
    "S": _number(lambda m: m._part(1, 1000)),
    "z": _text("UTC", "Coordinated Universal Time"),
    "Z": _text("+0000"),
    "X": _text("Z"),
}
