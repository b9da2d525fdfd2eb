"""The horizon: a value is safe when all transactions that ran after it was seen have ended."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from penstock.imports.database.horizon import Horizon


def running(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_a_value_is_safe_at_once_where_nothing_runs() -> None:
    horizon = Horizon()
    horizon.note(5, 0)
    assert horizon.advance(0, running) == 5
    assert not horizon.is_waiting


def test_a_value_waits_for_the_transactions_that_ran_when_it_was_seen_and_no_others() -> None:
    horizon = Horizon()
    horizon.note(5, 0)
    assert horizon.advance(0, lambda: running("a", "b")) is None
    horizon.note(7, 1)
    assert horizon.advance(1, lambda: running("b", "c")) is None
    assert horizon.advance(2, lambda: running("c", "d")) == 5
    assert horizon.advance(3, lambda: running("d")) == 7


def test_a_pause_lies_between_the_value_and_the_look_at_transactions() -> None:
    horizon = Horizon(pause=2.0)
    horizon.note("2024-01-01", 10.0)
    assert horizon.advance(11.0, running) is None
    assert horizon.is_waiting
    assert horizon.advance(12.0, running) == "2024-01-01"


def test_smaller_values_and_none_are_no_candidates() -> None:
    horizon = Horizon()
    horizon.note(None, 0)
    assert not horizon.is_waiting
    horizon.note(5, 0)
    assert horizon.advance(0, running) == 5
    horizon.note(3, 1)
    assert not horizon.is_waiting
    assert horizon.safe == 5


def test_texts_come_after_numbers_as_in_sqlite() -> None:
    horizon = Horizon()
    horizon.note(5, 0)
    horizon.note("a", 0)
    assert horizon.advance(0, running) == "a"
    horizon.note(9, 1)
    assert not horizon.is_waiting


def test_many_candidates_do_not_push_the_first_one_out() -> None:
    horizon = Horizon()
    horizon.note(0, 0)
    horizon.advance(0, lambda: running("first"))
    for n in range(1, 500):
        horizon.note(n, n)
        horizon.advance(n, lambda n=n: running("first", f"t{n}"))
    assert horizon.advance(500, lambda: running("t499")) == 498


@given(st.integers(0, 1 << 30))
def test_no_row_is_passed_whatever_the_order_of_commits(seed: int) -> None:
    """A model of a database: numbers are taken in order, transactions end in any order."""
    chance = random.Random(seed)
    horizon, following = Horizon(), 1
    open_rows: dict[str, list[int]] = {}
    visible: set[int] = set()
    position = 0
    read: list[int] = []
    for step in range(200):
        action = chance.random()
        if action < 0.3:
            open_rows[f"t{step}"] = []
        elif action < 0.6 and open_rows:
            open_rows[chance.choice(list(open_rows))].append(following)
            following += 1
        elif action < 0.8 and open_rows:
            rows = open_rows.pop(chance.choice(list(open_rows)))
            visible |= set(rows) if chance.random() < 0.8 else set()
        else:
            horizon.note(max(visible, default=None), step)
            safe = horizon.advance(step, lambda: frozenset(open_rows))
            read += sorted(n for n in visible if position < n <= (safe or 0))
            position = max(read, default=0)
    for rows in open_rows.values():
        visible |= set(rows)
    horizon.note(max(visible, default=None), 1000)
    safe = horizon.advance(1000, frozenset)
    read += sorted(n for n in visible if position < n <= (safe or 0))
    assert read == sorted(visible)
