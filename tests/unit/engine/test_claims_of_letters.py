"""Two replays, on whatever machines, never take the same letter: all orders of their steps, at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from threading import Event, Thread
from typing import Any

import pytest

from penstock.engine.dead_letters.dead_letter_store import DeadLetterStore, Plan
from penstock.engine.dead_letters.letter import REPLAYED, DeadLetter
from penstock.pipeline import Pipeline

PIPELINE = Pipeline(
    name="p",
    connection={"bootstrap.servers": "nowhere:1"},
    source={"kafka": "t"},
    sink="discard",
    dead_letters={"memory": "nothing"},
)
LETTERS = [DeadLetter(topic="t", partition=0, offset=n, stage="step", epoch=7) for n in range(6)]


class Turns:
    """Lets one of several threads run at a time, from one access to the next, in a random order."""

    def __init__(self, seed: int, threads: int) -> None:
        self._random = random.Random(seed)
        self._waiting: dict[int, Event] = {n: Event() for n in range(threads)}
        self._next()

    def _next(self) -> None:
        if self._waiting:
            self._waiting[self._random.choice(list(self._waiting))].set()

    def take(self, thread: int) -> None:
        self._waiting[thread].clear()
        self._next()
        assert self._waiting[thread].wait(10)

    def begin(self, thread: int) -> None:
        assert self._waiting[thread].wait(10)

    def end(self, thread: int) -> None:
        del self._waiting[thread]
        self._next()


class Shared(DeadLetterStore):
    """Letters in a list that several processes read and append to, each access in its turn."""

    def __init__(self, rows: list[DeadLetter], take_turn: Any = lambda: None) -> None:
        super().__init__(PIPELINE)
        self.rows = rows
        self._take_turn = take_turn

    def _from_table(self) -> Iterator[DeadLetter]:
        self._take_turn()
        return iter(list(self.rows))

    def _into_table(self, notes: Sequence[DeadLetter]) -> None:
        self._take_turn()
        self.rows.extend(notes)


@pytest.mark.parametrize("seed", range(60))
def test_a_letter_is_begun_by_one_replay_at_most(seed: int) -> None:
    rows = list(LETTERS)
    turns = Turns(seed, 3)
    plans: list[Plan] = []

    def run(thread: int) -> None:
        turns.begin(thread)
        wanted = LETTERS[thread : thread + 4]
        plan = Shared(rows, lambda: turns.take(thread)).claim(wanted, f"machine-{thread}")
        plans.extend([plan] if plan else [])
        turns.end(thread)

    threads = [Thread(target=run, args=(n,), daemon=True) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    taken = [identity for plan in plans for identity in plan.letters]
    assert len(taken) == len(set(taken))
    left = {letter.identity for letter in Shared(rows).waiting()}
    assert left == {letter.identity for letter in LETTERS} - set(taken)


def test_a_letter_that_was_replayed_or_dropped_meanwhile_is_not_planned() -> None:
    rows = list(LETTERS)
    seen = Shared(rows).waiting()
    first = Shared(rows).claim(seen[:2], "a")
    assert first is not None
    Shared(rows).end(first)
    assert Shared(rows).drop(seen[1:3]) == 1

    second = Shared(rows).claim(seen, "b")

    assert second is not None
    assert sorted(note.offset for note in second.letters.values()) == [3, 4, 5]
    Shared(rows).end(second)
    assert Shared(rows).claim(seen, "a") is None
    assert Shared(rows).waiting() == []


def test_a_plan_that_is_ended_in_part_is_still_open() -> None:
    rows = list(LETTERS)
    plan = Shared(rows).claim(LETTERS, "a")
    assert plan is not None
    first = next(iter(plan.letters.values()))
    rows.append(first.noted(REPLAYED, plan.number, plan.owner))

    (again,) = Shared(rows).unfinished()

    assert (again.number, again.owner, again.begun) == (plan.number, "a", True)
    assert [note.restored().value for note in again.letters.values()] == [None] * 6


def test_what_was_released_waits_again() -> None:
    rows = list(LETTERS)
    plan = Shared(rows).claim(LETTERS, "a")
    assert plan is not None
    assert Shared(rows).waiting() == []
    Shared(rows).release(plan)
    assert Shared(rows).waiting() == LETTERS
    assert Shared(rows).unfinished() == []


def test_the_number_of_a_replay_grows_whatever_the_clock_says(monkeypatch: Any) -> None:
    rows = list(LETTERS)
    first = Shared(rows).claim(LETTERS[:1], "a")
    monkeypatch.setattr("time.time_ns", lambda: 0)
    second = Shared(rows).claim(LETTERS[1:], "b")
    assert first is not None
    assert second is not None
    assert second.number > first.number
