"""Counts a world after all events: each record must be there once, as a row or as a dead letter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.faults.suite.load import is_bad
from tests.faults.suite.targets import TARGETS
from tests.faults.suite.world import World, may_be_refused, number_at, number_of, value

from penstock import Admin
from penstock.engine.dead_letters.letter import DeadLetter, from_record
from penstock.testing import read_all

EVENTS = ("kills", "suspended", "twins", "state lost", "clock", "groups", "replays", "definitions")
COUNTS = ("records", "lost", "duplicated", "dead letters", "letters lost", "letters duplicated",
          "replayed or dropped", "behind")  # fmt: skip
HEAD = ("sink", *EVENTS, *COUNTS)


@dataclass
class Verdict:
    """What the events did to the records of one pipeline."""

    sink: str
    events: Counter[str]
    records: int = 0
    lost: list[int] = field(default_factory=list)
    duplicated: list[int] = field(default_factory=list)
    dead: int = 0
    letters_lost: list[int] = field(default_factory=list)
    letters_duplicated: list[int] = field(default_factory=list)
    behind: int = 0

    @property
    def is_exact(self) -> bool:
        wrong = (self.lost, self.duplicated, self.letters_lost, self.letters_duplicated)
        return not any(wrong) and not self.behind

    @property
    def happened(self) -> int:
        """How many kills and events the pipeline had."""
        return sum(self.events[what] for what in EVENTS)

    def cells(self) -> list[str]:
        counts = (
            self.records, len(self.lost), len(self.duplicated), self.dead, len(self.letters_lost),
            len(self.letters_duplicated), self.events["letters handled"], self.behind,
        )  # fmt: skip
        events = [self.events[what] for what in EVENTS]
        return [self.sink, *(f"{number:,}" for number in (*events, *counts))]


def verdicts(
    world: World,
    tally: dict[str, Counter[str]],
    handled: dict[str, dict[str, list[int]]],
    sent: int,
) -> list[Verdict]:
    return [_verdict(world, sink, tally[sink], handled[sink], sent) for sink in world.sinks]


def _verdict(
    world: World, sink: str, events: Counter[str], handled: dict[str, list[int]], sent: int
) -> Verdict:
    own = world.of(sink)
    rows = _rows(world, sink, sent)
    letters = list(_letters(own.connection, f"{own.name}.dead-letters"))
    counted = Counter(number_of(each) for each in letters)
    wrong = [n for n in counted if not is_bad(n) and not may_be_refused(n)]
    assert not wrong, f"{sink}: good records are among the dead letters: {wrong[:10]}"
    found = Verdict(sink, events, sent, dead=len(counted))
    # A replay that fails again gives the record one more letter.
    again, corrected = Counter(handled["again"]), set(handled["corrected"])
    for n in range(sent):
        _compare(found, n, rows[n], counted[n] - again[n], is_corrected=n in corrected)
    found.behind = behind(world, sink)
    return found


def _compare(found: Verdict, n: int, rows: int, letters: int, *, is_corrected: bool) -> None:
    found.letters_lost += [n] * ((1 if is_bad(n) else 0) - letters)
    found.letters_duplicated += [n] * (letters - 1)
    wanted = 1 if is_corrected or not (letters or is_bad(n)) else 0
    found.lost += [n] * (wanted - rows)
    found.duplicated += [n] * (rows - wanted)


def _rows(world: World, sink: str, sent: int) -> Counter[int]:
    rows = list(TARGETS[sink].rows(world.of(sink)))
    wrong = [row for row in rows if number_at(row[0], row[1]) != row[2]]
    assert not wrong, f"{sink}: rows with the number of another record: {wrong[:10]}"
    counted = Counter(n for _, _, n in rows)
    assert all(0 <= n < sent for n in counted), f"{sink}: rows that were never sent"
    return counted


def _letters(connection: object, topic: str) -> Iterable[DeadLetter]:
    for record in read_all(connection, topic):  # type: ignore[arg-type]
        letter = from_record(record)
        assert letter is not None and letter.is_readable, record
        if not letter.is_note:
            assert letter.value == value(number_of(letter)), letter
            yield letter


def behind(world: World, sink: str) -> int:
    with Admin(world.setting.connection) as admin:
        committed = admin.committed(world.of(sink).name)
        ends = admin.latest(admin.partitions([world.setting.name]))
    return sum(end - committed.get(partition, 0) for partition, end in ends.items())
