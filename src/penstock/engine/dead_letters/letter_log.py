"""What was done with dead letters, as the notes next to them say, wherever they are stored."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.engine.dead_letters.letter import (
    BEGUN,
    DROPPED,
    PLANNED,
    RELEASED,
    REPLAYED,
    DeadLetter,
)

Identity = tuple[str, int, int]


@dataclass
class Plan:
    """A replay as its notes say: which letters it takes, and how far it got."""

    number: int
    owner: str
    letters: dict[Identity, DeadLetter] = field(default_factory=dict)
    begun: bool = False
    released: bool = False
    replayed: set[Identity] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        """Return whether some of its letters are neither replayed by it nor released."""
        return not self.released and not self.letters.keys() <= self.replayed


class LetterLog(ABC):
    """Letters and the notes about them, in the order in which they were written; notes are added."""

    def __init__(self) -> None:
        self._all: list[DeadLetter] | None = None

    @abstractmethod
    def _load(self) -> Iterable[DeadLetter]:
        """Return all letters and notes."""

    @abstractmethod
    def _append(self, notes: Sequence[DeadLetter]) -> None:
        """Add notes; return when they are safe."""

    def waiting(self) -> list[DeadLetter]:
        """Return the letters with which nothing was done yet, oldest first."""
        taken = self._done() | self._planned(self.unfinished())
        letters = [letter for letter in self._read() if not letter.is_note]
        # A sink that is at-least-once may have a letter twice: it is one letter.
        unique = {letter.identity: letter for letter in letters}
        return [letter for identity, letter in unique.items() if identity not in taken]

    def unfinished(self) -> list[Plan]:
        """Return the replays that were planned and neither ended nor given back, oldest first."""
        return sorted(
            (plan for plan in self._plans() if plan.is_open), key=lambda plan: plan.number
        )

    def claim(self, letters: Iterable[DeadLetter], owner: str) -> Plan | None:
        """Plan a replay of those letters that are still open; None where none is.

        Two processes that want the same letter each write their plan first and look at the plans of
        others then: at most one of them finds no other, whatever machines they are on, and begins.
        """
        while True:
            self._all = None
            still = {letter.identity for letter in self.waiting()}
            letters = [letter for letter in letters if letter.identity in still]
            if not letters:
                return None
            plan = self._plan(letters, owner)
            others = [p for p in self.unfinished() if (p.number, p.owner) != (plan.number, owner)]
            taken = self._done() | self._planned(others)
            if not taken & plan.letters.keys():
                self._note(plan, BEGUN)
                return plan
            self.release(plan)
            letters = [letter for letter in letters if letter.identity not in taken]

    def release(self, plan: Plan) -> None:
        """Write down that the letters of a replay wait again, but those that it ended."""
        self._note(plan, RELEASED)

    def end(self, plan: Plan, letters: Iterable[DeadLetter] | None = None) -> None:
        """Write down that a replay is done, or done for these letters of it."""
        identities = plan.letters if letters is None else [each.identity for each in letters]
        notes = [plan.letters[identity] for identity in identities]
        self._add([note.noted(REPLAYED, plan.number, plan.owner) for note in notes])

    def drop(self, letters: Iterable[DeadLetter]) -> int:
        """Write down that nothing is to be done with those letters that are still open; count them."""
        self._all = None
        still = {letter.identity for letter in self.waiting()}
        dropped = [letter for letter in letters if letter.identity in still]
        self._add([letter.noted(DROPPED) for letter in dropped])
        return len(dropped)

    def _plan(self, letters: Sequence[DeadLetter], owner: str) -> Plan:
        last = max((plan.number for plan in self._plans()), default=0)
        number = max(last + 1, time.time_ns() // 1000)
        notes = [letter.planned(number, owner) for letter in letters]
        self._add(notes)
        return Plan(number, owner, {note.identity: note for note in notes})

    def _note(self, plan: Plan, stage: str) -> None:
        first = next(iter(plan.letters.values()))
        self._add([first.noted(stage, plan.number, plan.owner)])

    def _plans(self) -> Iterable[Plan]:
        plans: dict[tuple[int, str], Plan] = {}
        for note in self._read():
            if not note.is_note or note.stage == DROPPED:
                continue
            key = note.about.replay, note.about.owner
            plan = plans.setdefault(key, Plan(*key))
            if note.stage == PLANNED:
                plan.letters[note.identity] = note
            elif note.stage == REPLAYED:
                plan.replayed.add(note.identity)
            plan.begun |= note.stage == BEGUN or not note.about.owner  # older notes have no owner
            plan.released |= note.stage == RELEASED
        return plans.values()

    def _done(self) -> set[Identity]:
        done = (REPLAYED, DROPPED)
        return {note.identity for note in self._read() if note.stage in done}

    @staticmethod
    def _planned(plans: Iterable[Plan]) -> set[Identity]:
        return {identity for plan in plans for identity in plan.letters}

    def _read(self) -> list[DeadLetter]:
        if self._all is None:
            self._all = list(self._load())
        return self._all

    def _add(self, notes: Sequence[DeadLetter]) -> None:
        if notes:
            self._all = None
            self._append(notes)
