"""The form `since`: each request asks for the records from the largest value so far on.

An API may give the records that have exactly this value again, or leave them out. The position has the
digests of those that were imported, so both are right, and so is a record that gets the value later where
the API gives it again.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from penstock.config.printable import printable
from penstock.errors import TerminalError
from penstock.imports.http.json_text import Pointer, Scalar
from penstock.imports.http.paging_forms import (
    Page,
    PagingForm,
    Step,
    Target,
    digest,
    wrong_position,
)
from penstock.imports.http.paging_options import Since
from penstock.pipeline.importing import BadRecord, Position

_MOST_AT_ONE_VALUE = 10_000
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s*(Z|z|[+-]\d\d:?\d\d)?"
)


class Rank(NamedTuple):
    """A value that can be compared with others of its kind."""

    kind: str
    order: Decimal | str

    @classmethod
    def of(cls, value: Scalar) -> Rank | None:
        """Return the rank of a value: of numbers, of times (with any zone and precision), of texts.

        >>> Rank.of(Scalar("2024-01-01T01:00:00+01:00")) == Rank.of(Scalar("2024-01-01T00:00:00.0Z"))
        True
        """
        try:
            if value.is_number:
                return cls("number", Decimal(value.text))
            seconds = _seconds(value.text)
        except (ArithmeticError, ValueError):
            seconds = None
            if value.is_number:
                return None
        return cls("text", value.text) if seconds is None else cls("time", seconds)


class SinceForm(PagingForm):
    """The records from a value on. The position has the value, and what was imported of it."""

    is_conditional = True

    def __init__(self, options: Since) -> None:
        self._options = options
        self._field = Pointer.read(options.field)

    def target(self, position: Position) -> Target:
        """Return the largest value as a parameter; none before the first record, unless one is given."""
        start = self._options.start
        value = self._last(position) or (Scalar.given(start) if start is not None else None)
        params = {self._options.parameter: value} if value else {}
        return Target(params=params, into_body=self._options.into == "body")

    def step(self, position: Position, page: Page) -> Step:
        """Return the records that were not imported, and the largest value of all."""
        tally = _Tally(self._field, self._last(position), _set(position, "seen"))
        known_bad = _set(position, "bad")
        for element in page.elements:
            tally.add(element)
        self._require_progress(page, tally)
        bad = tuple(
            BadRecord(element, why)
            for name, (element, why) in tally.bad.items()
            if name not in known_bad
        )
        if not tally.new and not bad:
            return Step((), position, more=False)
        after = _position(tally.largest, tally.at_largest, {*tally.bad})
        more = bool(tally.new) and tally.largest != self._last(position)
        return Step(tally.new, after, more, bad)

    def _last(self, position: Position) -> Scalar | None:
        value = position.get("since")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise wrong_position(position, "'since' is neither a text nor a number")
        last = Scalar(str(value), bool(position.get("number")) or not isinstance(value, str))
        if Rank.of(last) is None:
            raise wrong_position(position, "'since' is not a number")
        return last

    def _require_progress(self, page: Page, tally: _Tally) -> None:
        """Raise where a full page would be the last one, or is not in the order of the field."""
        size = self._options.page_size
        if size is None or len(page.elements) < size:
            return
        if not tally.is_sorted:
            raise TerminalError(
                f"{page.reply} is a full page and is not sorted by {self._options.field!r}: records that "
                "come later would be left out; let the API sort them, with a parameter in 'params'"
            )
        if not tally.new:
            raise TerminalError(
                f"{page.reply} is a full page, and all of it was imported: more than {size} records have "
                f"the same value of {self._options.field!r}; let the API give larger pages"
            )


class _Tally:
    """What the records of a page are, one after the other, for an import that was at `last`."""

    def __init__(self, field: Pointer, last: Scalar | None, seen: frozenset[str]) -> None:
        self._field = field
        self._seen = seen
        self._least = self._rank = self._before = Rank.of(last) if last else None
        self.largest = last
        self.at_largest = set(seen)
        self.new: list[bytes] = []
        self.bad: dict[str, tuple[bytes, str]] = {}
        self.is_sorted = True

    def add(self, element: bytes) -> None:
        """Add a record: it is new, or was imported, or has no value that can be compared."""
        name, value = digest([element]), Scalar.read(self._field.find(element))
        rank = Rank.of(value) if value else None
        if value is None or rank is None or (self._rank and rank.kind != self._rank.kind):
            self.bad[name] = element, self._why_bad(value)
            return
        self.is_sorted &= self._before is None or not _less(rank, self._before)
        self._before = rank
        if self._least is not None and _less(rank, self._least):
            return  # it was imported: the API gives more than it is asked for
        if self._rank is None or _less(self._rank, rank):
            self._rank, self.largest, self.at_largest = rank, value, set()
        if rank == self._rank:
            self.at_largest.add(name)
        if name not in self._seen:
            self.new.append(element)

    def _why_bad(self, value: Scalar | None) -> str:
        where = self._field.text
        if value is None:
            return f"the record has neither a text nor a number at {where!r}, the field of 'since'"
        kind = self._rank.kind if self._rank else "number"
        return f"{printable(value.text)[:100]!r} at {where!r} is not a {kind} that can be compared"


def _less(a: Rank, b: Rank) -> bool:
    return a.order < b.order  # type: ignore[operator]


def _set(position: Position, name: str) -> frozenset[str]:
    names = position.get(name, [])
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise wrong_position(position, f"{name!r} is not a list of texts")
    return frozenset(names)


def _position(largest: Scalar | None, seen: set[str], bad: set[str]) -> Position:
    if len(seen) + len(bad) > _MOST_AT_ONE_VALUE:
        what = f"the value {printable(largest.text)!r}" if largest else "no value"
        raise TerminalError(
            f"more than {_MOST_AT_ONE_VALUE} records have {what}: a position cannot name them all; use a "
            "field that tells them apart, or another form of paging"
        )
    position: Position = {}
    if largest is not None:
        position = {"since": largest.text, "seen": sorted(seen)}
        if largest.is_number:
            position["number"] = True
    return {**position, "bad": sorted(bad)} if bad else position


def _seconds(text: str) -> Decimal | None:
    """Return a time as exact seconds; None where the text is not a time. Without a zone it is UTC."""
    match = _TIME.fullmatch(text)
    if not match:
        return None
    day, minute, second, fraction, zone = match.groups()
    at = datetime.fromisoformat(f"{day}T{minute}:{second or '00'}")
    if zone and zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        shift = timedelta(hours=hours, minutes=minutes)
        at = at + shift if zone[0] == "-" else at - shift
    whole = (at - datetime(1970, 1, 1)) // timedelta(seconds=1)  # all are UTC here
    return Decimal(whole) + Decimal(f"0.{fraction or 0}")
