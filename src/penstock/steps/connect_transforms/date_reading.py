"""Moments from text, as leniently as Java's SimpleDateFormat reads them in UTC with English names.

A number may have fewer or more digits than its field, a month may be 13, a day 0, and what follows the
pattern in a text is not read. A day of the week is read and does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.steps.connect_transforms.date_pattern import DAYS, MONTHS, Token, tokens
from penstock.steps.connect_transforms.date_text import MILLIS_OF_DAY
from penstock.steps.connect_transforms.record_columns import MismatchError

_NOT_READ = "wWFY"
_ZONE = r"(?i:(?:GMT|UTC|UT)?[+-][0-9]{1,2}:?[0-9]{2}|GMT|UTC|UT)"
_ZONES = {1: r"(?:Z|[+-][0-9]{2})", 2: r"(?:Z|[+-][0-9]{4})", 3: r"(?:Z|[+-][0-9]{2}:[0-9]{2})"}
_OFFSET = r"([+-])([0-9]{1,2}?):?([0-9]{2})?\z"


def read_millis(text: Column, pattern: str) -> Column:
    """Return the milliseconds since 1970 of a text; a text that does not match raises."""
    fields = tokens(pattern)
    if bad := [token.letter for token in fields if token.letter and token.letter in _NOT_READ]:
        raise MismatchError(
            f"Texts with the pattern {pattern} cannot be read: the letter {bad[0]} is for writing only"
        )
    regex = _regex(fields)
    moment = _Reading(text, regex, [token for token in fields if token.letter])
    refuse = f.raise_error(
        f.concat(
            f.lit("Could not parse timestamp: value ("),
            text,
            f.lit(f") does not match pattern ({pattern})"),
        )
    )
    matches = f.rlike(text, f.lit(regex))
    return f.when(matches, moment.millis()).when(text.isNotNull(), refuse.cast("bigint"))


def _regex(fields: list[Token]) -> str:
    parts = [r"\A"]
    for token, following in zip(fields, [*fields[1:], Token("")], strict=True):
        if not token.letter:
            parts.append(_quoted(token.text))
        elif token.is_number:
            parts.append(_digits(token.count) if following.is_number else r"[ \t]*(-?[0-9]+)")
        else:
            parts.append(rf"[ \t]*({_words(token)})")
    return "".join(parts)


def _quoted(text: str) -> str:
    return "".join(rf"\x{{{ord(sign):x}}}" for sign in text)


def _digits(count: int) -> str:
    """Return an expression for a number that another follows: in `count` signs, spaces included."""
    forms = []
    for spaces in range(count):
        left = count - spaces
        forms += [rf"[ \t]{{{spaces}}}-[0-9]{{1,{left - 1}}}"] if left > 1 else []
        forms.append(rf"[ \t]{{{spaces}}}[0-9]{{1,{left}}}")
    return rf"(?=[\s\S]{{{count}}})({'|'.join(forms)})"


def _words(token: Token) -> str:
    match token.letter:
        case "M" | "L":
            return _any_of(MONTHS)
        case "E":
            return _any_of(DAYS)
        case "a":
            return "(?i:AM|PM)"
        case "G":
            return "(?i:AD|BC)"
        case "X":
            return _ZONES[token.count]
    return _ZONE


def _any_of(names: tuple[str, ...]) -> str:
    return f"(?i:{'|'.join([*names, *(name[:3] for name in names)])})"


class _Reading:
    """The fields of a text that matches."""

    def __init__(self, text: Column, regex: str, fields: list[Token]) -> None:
        self._groups = {
            token.letter: (token, f.regexp_extract(text, regex, index))
            for index, token in enumerate(fields, 1)
        }

    def millis(self) -> Column:
        """Return the moment."""
        days = f.unix_date(self._month_begin()).cast("bigint") + self._day() - 1
        total = days * MILLIS_OF_DAY
        for part in self._times():
            total = total + part
        return total

    def _number(self, *letters: str) -> Column | None:
        for letter in letters:
            if letter in self._groups:
                return self._groups[letter][1].cast("bigint")
        return None

    def _month_begin(self) -> Column:
        year = self._year()
        months = year * 12 + (self._month() - 1)
        in_year = f.pmod(months, f.lit(12))
        return f.make_date(
            ((months - in_year) / 12).cast("int"), (in_year + 1).cast("int"), f.lit(1)
        )

    def _year(self) -> Column:
        if "y" not in self._groups:
            return f.lit(1970).cast("bigint")
        token, text = self._groups["y"]
        year = text.cast("bigint")
        if token.count <= 2:
            start = datetime.now(timezone.utc).year - 80
            century = start - start % 100
            short = year + century + f.when(year < start % 100, 100).otherwise(0)
            year = f.when(f.rlike(text, f.lit(r"\A[0-9]{2}\z")), short).otherwise(year)
        if "G" in self._groups:
            before = f.upper(self._groups["G"][1]) == "BC"
            year = f.when(before, 1 - year).otherwise(year)
        return year

    def _month(self) -> Column:
        for letter in "ML":
            if letter in self._groups:
                token, text = self._groups[letter]
                if token.is_number:
                    return text.cast("bigint")
                short = f.array(*(f.lit(name[:3].lower()) for name in MONTHS))
                return f.array_position(short, f.lower(f.substring(text, 1, 3)))
        return f.lit(1).cast("bigint")

    def _day(self) -> Column:
        day = self._number("d")
        if day is None and not {"M", "L"} & {*self._groups}:
            day = self._number("D")
        return f.lit(1).cast("bigint") if day is None else day

    def _times(self) -> Iterator[Column]:
        yield self._hour() * 3_600_000
        for letter, unit in (("m", 60_000), ("s", 1000), ("S", 1)):
            number = self._number(letter)
            if number is not None:
                yield number * unit
        for letter in "zZX":
            if letter in self._groups:
                yield -_offset(self._groups[letter][1])

    def _hour(self) -> Column:
        if (hour := self._number("H")) is not None:
            return hour
        if (hour := self._number("k")) is not None:
            return f.when(hour == 24, 0).otherwise(hour).cast("bigint")
        hour = self._number("h", "K")
        hour = f.lit(0).cast("bigint") if hour is None else hour
        if "h" in self._groups:
            hour = f.when(hour == 12, 0).otherwise(hour).cast("bigint")
        if "a" in self._groups:
            hour = hour + f.when(f.upper(self._groups["a"][1]) == "PM", 12).otherwise(0)
        return hour


def _offset(zone: Column) -> Column:
    """Return the milliseconds that a zone such as +0530 or GMT-3:00 is ahead of UTC."""
    sign, hours, minutes = (f.regexp_extract(zone, _OFFSET, n) for n in (1, 2, 3))
    total = _or_zero(hours) * 3_600_000 + _or_zero(minutes) * 60_000
    return f.when(sign == "-", -total).otherwise(total)


def _or_zero(digits: Column) -> Column:
    return f.when(digits != "", digits).otherwise(f.lit("0")).cast("bigint")
