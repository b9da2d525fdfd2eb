"""The dead letters of a pipeline, wherever its sink for them stores them, and what was done with them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.config import Connection
from penstock.engine.dead_letter_batch import TABLE
from penstock.engine.dead_letters.letter import (
    BEGUN,
    DROPPED,
    PLANNED,
    RELEASED,
    REPLAYED,
    DeadLetter,
    as_headers,
    from_record,
    from_row,
)
from penstock.engine.session import spark_session
from penstock.pipeline import Batch, Opening, Pipeline
from penstock.pipeline.derived_names import dead_letters_of
from penstock.pipeline.record_store import NewRecord, RecordStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


class DeadLetterStore:
    """Reads letters and notes, and adds notes.

    A topic is read and written by the client, without Spark; a table through the sink itself.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._sink = pipeline.dead_letter_sink
        self._all: list[DeadLetter] | None = None

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
        """Write down that a replay wrote nothing and its letters wait again."""
        self._note(plan, RELEASED)

    def end(self, plan: Plan) -> None:
        """Write down that a replay is done."""
        letters = plan.letters.values()
        self._add([letter.noted(REPLAYED, plan.number, plan.owner) for letter in letters])

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
            self._all = list(
                self._from_store(store) if (store := self._store()) else self._from_table()
            )
        return self._all

    def _add(self, notes: Sequence[DeadLetter]) -> None:
        if not notes:
            return
        self._all = None
        if store := self._store():
            # A plan has the whole record.
            store.append(NewRecord(each.key, each.value, as_headers(each)) for each in notes)
        else:
            self._into_table(notes)

    def _connection(self) -> Connection:
        return self.pipeline.find_connection()

    def _store(self) -> RecordStore | None:
        return self._sink.record_store(self._connection())

    @staticmethod
    def _from_store(store: RecordStore) -> Iterator[DeadLetter]:
        """Read settled letters, and all notes: those that are hidden tell what other replays take."""
        for record, is_settled in store.read():
            letter = from_record(record)
            if letter and (is_settled or letter.is_note):
                yield letter

    def _from_table(self) -> Iterator[DeadLetter]:
        name = dead_letters_of(self.pipeline.name)
        with self._sink.open(Opening(self._spark(), name, self._connection())) as writer:
            rows = writer.read_back(TABLE)
            letters = [] if rows is None else rows.select(*TABLE.names).toArrow().to_pylist()
        yield from map(from_row, letters)

    def _into_table(self, notes: Sequence[DeadLetter]) -> None:
        """Append the notes; a repeated note changes nothing, so they need no mark."""
        spark, connection = self._spark(), self._connection()
        rows = spark.createDataFrame([_as_row(note) for note in notes], TABLE)
        # A unique name for each write: others may write notes, or letters, at the same time.
        name = f"{dead_letters_of(self.pipeline.name)}~notes-{time.time_ns()}"
        with self._sink.open(Opening(spark, name, connection)) as writer:
            writer.prepare(TABLE)
            writer.write(Batch(rows, name, 0, 0, connection, may_repeat=False))

    def _spark(self) -> SparkSession:
        return spark_session(self.pipeline.session_options)


def _as_row(letter: DeadLetter) -> tuple[Any, ...]:
    fields = msgspec.structs.asdict(letter)
    fields["headers"] = [{"key": key, "value": value} for key, value in letter.headers]
    return tuple(fields[name] for name in TABLE.names)
