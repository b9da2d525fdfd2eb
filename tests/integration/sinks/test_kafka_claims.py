"""Two processes that claim epochs of one pipeline at the same moment: the later epoch goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.config import Connection
from penstock.errors import FencedError
from penstock.kafka import Admin
from penstock.kafka.producing.record_transaction import Transaction
from penstock.pipeline import CLAIMED, Mark
from penstock.sinks.kafka import claiming
from penstock.sinks.kafka.claiming import Claim, stored_marks
from penstock.sinks.kafka.kafka_marks import Marks, note_of
from penstock.sinks.kafka.task_marks import to_claim


@pytest.fixture(params=[False, True], ids=["same cluster", "abroad"])
def scopes(
    connection: Connection, topic: Callable[..., str], request: pytest.FixtureRequest
) -> Any:
    with Admin(connection) as admin:
        for name in (topic("in"), topic("out")):
            admin.create_topic(name, partitions=2)
    read = [(topic("in"), 0), (topic("in"), 1)]
    return to_claim(f"p{topic('in')}", topic("out"), read, abroad=request.param)


def epochs(connection: Connection, scopes: Any) -> set[int]:
    whole, others = scopes
    marks = [stored_marks(connection, each.group, None) for each in (whole, *others)]
    return {stored.mark.epoch for each in marks for stored in each.values()}


def test_an_earlier_epoch_leaves_the_transactions_of_a_later_one_alone(
    connection: Connection, scopes: Any
) -> None:
    whole, others = scopes
    earlier, later = Claim(connection, "p", 7), Claim(connection, "p", 8)
    earlier.make(whole, [])
    later.make(whole, others)

    with Transaction(connection, others[0].transaction, {}) as running:
        running.begin()
        with pytest.raises(FencedError, match="the sink has epoch 8, this process has 7"):
            earlier._take_over(whole, others[0])
        marks = Marks(connection, others[0].group)
        marks.commit(running, {others[0].spans[0]: note_of("p~8~0~0", 0)})
        marks.close()

    assert epochs(connection, scopes) == {8}


def test_an_id_that_an_earlier_epoch_takes_back_in_the_same_moment_is_taken_over_again(
    connection: Connection, scopes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, others = scopes
    Claim(connection, "p", 7).make(whole, [])
    read, overtaken = claiming.Marks.read, []

    def overtake(marks: Any, spans: Any) -> Any:
        spans = tuple(spans)
        found = read(marks, spans)
        own = (marks.group, spans) == (others[0].group, others[0].spans)
        if own and len(overtaken) < 2:
            overtaken.append(spans)
            Transaction(connection, others[0].transaction, {}).__exit__()
        return found

    monkeypatch.setattr(claiming.Marks, "read", overtake)
    Claim(connection, "p", 8).make(whole, others)

    assert len(overtaken) == 2
    assert epochs(connection, scopes) == {8}


def test_a_later_epoch_is_never_replaced_by_an_earlier_one(
    connection: Connection, scopes: Any
) -> None:
    whole, others = scopes
    earlier = Claim(connection, "p", 7)
    earlier.make(whole, [])
    Claim(connection, "p", 8).make(whole, others)
    # It looked before the other one claimed, and takes over after it.
    with pytest.raises(FencedError, match="the sink has epoch 8, this process has 7"):
        earlier._at(others[0])
    assert epochs(connection, scopes) == {8}


def test_a_claim_that_continues_an_epoch_keeps_the_mark_of_each_partition(
    connection: Connection, scopes: Any
) -> None:
    whole, others = scopes
    Claim(connection, "p", 7).make(whole, others)
    for number, each in enumerate(others):
        with Transaction(connection, each.transaction, {}) as task:
            task.begin()
            marks = Marks(connection, each.group)
            (span,) = each.spans
            end = span._replace(start=0, end=10 + number)
            marks.commit(task, {end: note_of(f"p~7~{3 + number}~{number}", 0)})
            marks.close()
    # One takes over, and another one from it.
    Claim(connection, "p", 9, {7}).make(whole, others)
    Claim(connection, "p", 11, {7, 9}).make(whole, others)

    kept = [stored_marks(connection, each.group, each.partitions) for each in others]
    for number, (each, found) in enumerate(zip(others, kept, strict=True)):
        stored = found[each.partitions[0]]
        assert (stored.mark, stored.offset) == (Mark(11, 3 + number, number), 10 + number)
    # An epoch of its own claims without the writes of others.
    Claim(connection, "p", 13, {3}).make(whole, others)
    assert epochs(connection, scopes) == {13}
    kept = [stored_marks(connection, each.group, each.partitions) for each in others]
    assert {one.mark.batch for found in kept for one in found.values()} == {CLAIMED}
