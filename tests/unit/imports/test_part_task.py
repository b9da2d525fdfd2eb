"""What a task does with a part, over a transaction that only notes what was sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from penstock import Connection
from penstock.errors import TransientError
from penstock.imports import part_opening, part_task
from penstock.imports.part_task import Errand, Outcome, run, run_all
from penstock.imports.positions import Known
from penstock.pipeline.importing import Part, Place, Portion, Position, Reader


class Numbers(Part):
    """Ten portions of one record; each takes `seconds` to read."""

    def __init__(self, clock: list[float], seconds: float, name: str = "numbers") -> None:
        self.clock, self.seconds, self.name = clock, seconds, name
        self.settled = 0

    @property
    def place(self) -> Place:
        return {"name": self.name}

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        part = self

        class Reading(Reader):
            at = position["n"] if position else 0

            def take(self, most: int) -> Iterator[Portion]:
                end = min(10, self.at + most)
                while self.at < end:
                    part.clock[0] += part.seconds
                    self.at += 1
                    yield Portion.of([b"%d" % self.at], {"n": self.at})

            def settle(self) -> None:
                part.settled += 1

        yield Reading()


class Noted:
    """Stands for Kafka: what was sent in each transaction that was committed."""

    largest = 1_000_000

    def __init__(self) -> None:
        self.committed: list[int] = []
        self.sent = 0
        self.fails = False
        self.made: list[object] = []
        self.left: list[object] = []

    def __call__(self, *arguments: object) -> Noted:
        self.made.append(arguments)
        return self

    def __enter__(self) -> Noted:
        return self

    def __exit__(self, *_: object) -> None:
        self.sent = 0
        self.left.append(self)

    def begin(self) -> None:
        self.sent = 0

    def send(self, records: Any, topic: str) -> None:
        self.sent += records.num_rows if topic == "into" else 0

    def commit(self) -> None:
        if self.fails:
            raise TransientError("the broker is away")
        self.committed.append(self.sent)

    def read(self, *_: object, **_more: object) -> Known:
        return Known({}, 1, 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(part_task.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted = Noted()
    monkeypatch.setattr(part_opening, "Transaction", noted)
    monkeypatch.setattr(part_opening, "Positions", noted)
    return noted


def errand(part: Part, most: int = 100) -> Errand:
    connection = Connection(brokers="127.0.0.1:1")
    return Errand("numbers", 1, part, connection, "into", "dead", Known({}, 1, 0), most)


def test_a_slow_part_is_written_in_several_transactions(clock: list[float], kafka: Noted) -> None:
    part = Numbers(clock, seconds=25.0)

    outcome = run(errand(part), until=clock[0] + 1000)

    # The fourth portion comes when the transaction is 75 s old.
    assert kafka.committed == [4, 4, 2]
    assert (outcome.records, outcome.transactions, part.settled) == (10, 3, 3)
    assert outcome.error is None


def test_a_turn_ends_after_the_transaction_in_which_it_is_over(
    clock: list[float], kafka: Noted
) -> None:
    first, second = Numbers(clock, 3.0, "first"), Numbers(clock, 3.0, "second")

    outcomes = run_all([errand(first, most=1), errand(second, most=1)])

    assert [(each.place, each.records, each.more) for each in outcomes] == [
        ('{"name":"first"}', 2, True)
    ]
    # What was opened for the second one is closed.
    assert len(kafka.left) == len(kafka.made)


def test_each_part_of_many_is_read_with_what_was_opened_for_it(
    clock: list[float], kafka: Noted
) -> None:
    parts = [Numbers(clock, 0.0, f"part {n}") for n in range(20)]

    outcomes = run_all([errand(part) for part in parts])

    assert [each.place for each in outcomes] == [f'{{"name":"part {n}"}}' for n in range(20)]
    assert {(each.records, each.error is None) for each in outcomes} == {(10, True)}
    assert len(kafka.left) == len(kafka.made) == 40


def test_a_part_that_cannot_be_opened_does_not_hold_up_the_others(
    clock: list[float], kafka: Noted
) -> None:
    parts = [errand(Numbers(clock, 0.0, f"part {n}")) for n in range(3)]
    fenced = msgspec.structs.replace(parts[1], claim=0)

    outcomes = run_all([parts[0], fenced, parts[2]])

    errors = [each.error and each.error["kind"] for each in outcomes]
    assert errors == [None, "FencedError", None]
    assert len(kafka.left) == len(kafka.made)


def test_nothing_is_settled_that_kafka_does_not_have(clock: list[float], kafka: Noted) -> None:
    kafka.fails = True
    part = Numbers(clock, 0.0)

    outcome = run(errand(part), until=clock[0] + 10)

    assert part.settled == 0
    assert outcome == Outcome('{"name":"numbers"}', more=True, error=outcome.error)
    assert outcome.error
    assert outcome.error["kind"] == "TransientError"
