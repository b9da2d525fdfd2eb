"""How far a table can be read without missing rows that are committed late.

A row may get its number, or its time, early and be committed late. A reader that has passed the number
by then would never return to it. So a value is *safe* only when every transaction that could still
commit a row at or below it has ended:

1. the newest value that can be seen is noted, as a candidate;
2. after that, the transactions that are running are noted with it;
3. when all of these have ended, whatever was to come at or below the candidate is committed.

A transaction that begins after step 2 gets greater values, because numbers and clocks only grow. Where a
database does not reveal its transactions, a candidate is safe after a delay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.imports.database.table_range import Value

_MOST = 64


@dataclass
class _Candidate:
    value: Value
    noted_at: float
    # The transactions to wait for; None until they were looked at.
    waits_for: frozenset[str] | None = None


class Horizon:
    """The horizon of one column: candidates, and the greatest value that is safe.

    `pause` is the time between noting a candidate and looking at the transactions, in seconds: the delay
    where there is nothing to look at; and for clocks, the time until the clock shows another value.

    >>> horizon = Horizon()
    >>> horizon.note(5, 0.0)
    >>> horizon.advance(0.0, lambda: frozenset({"a"}))
    >>> horizon.note(7, 1.0)
    >>> horizon.advance(1.0, lambda: frozenset({"b"}))
    5
    """

    def __init__(self, pause: float = 0.0) -> None:
        self._pause = pause
        self._candidates: list[_Candidate] = []
        self.safe: Value | None = None

    @property
    def is_waiting(self) -> bool:
        """Return whether some value that was seen is not safe yet."""
        return bool(self._candidates)

    def note(self, newest: Value | None, now: float) -> None:
        """Add the newest value as a candidate."""
        known = self._candidates[-1].value if self._candidates else self.safe
        if newest is None or (known is not None and not is_greater(newest, known)):
            return
        self._candidates.append(_Candidate(newest, now))
        if len(self._candidates) > _MOST:
            # Never the first one, or a horizon would not move while transactions overlap.
            del self._candidates[1]

    def advance(self, now: float, running: Callable[[], frozenset[str]]) -> Value | None:
        """Look at the running transactions, if a candidate wants that; return what is safe."""
        due = [each for each in self._candidates if now - each.noted_at >= self._pause]
        if not due:
            return self.safe
        current = running()
        for each in due:
            each.waits_for = current if each.waits_for is None else each.waits_for & current
            if not each.waits_for:
                self.safe = each.value
        # In the order of their values, so the last one that is safe is the greatest.
        self._candidates = [
            each for each in self._candidates if each.waits_for is None or each.waits_for
        ]
        self._drop_passed()
        return self.safe

    def _drop_passed(self) -> None:
        if self.safe is not None:
            safe = self.safe
            self._candidates = [each for each in self._candidates if is_greater(each.value, safe)]


def is_greater(one: Value, other: Value) -> bool:
    """Compare values of a column, which in SQLite may have values of several types: texts come last."""
    return (isinstance(one, str), one) > (isinstance(other, str), other)
