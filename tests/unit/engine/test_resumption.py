"""When the checkpoint holds, when the group's offsets win, and what the sink's last write adds."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.checkpoint import Planned
from penstock.engine.resumption import STARTS_OVER, Committed, ResumePoint, Stamp, Witnesses
from penstock.pipeline import CLAIMED, Delivery, LastWrite, Mark
from penstock.sinks.fencing import claimed

P0, P1 = ("t", 0), ("t", 1)
BEFORE = {P0: 10, P1: 5}
END = {P0: 20, P1: 9}
LEAST, MOST, EXACT = Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE, Delivery.EXACTLY_ONCE
EPOCH = 100


def epoch(*, done: bool, end: dict[Any, int] | None = None, number: int = EPOCH) -> Any:
    return SimpleNamespace(
        number=number,
        topics=lambda: {"t": "id"},
        last=lambda: Planned(3, end or END, done),
        begin_of=lambda _: BEFORE,
        start=lambda: {P0: 0, P1: 0},
    )


def point(found: Any, partitions: list[Any] | None = None, topic: str = "id") -> ResumePoint:
    return ResumePoint(partitions or [P0, P1], {"t": topic}, found)


def by_hand(offsets: dict[Any, int]) -> dict[Any, Committed]:
    return {place: Committed(offset) for place, offset in offsets.items()}


def by_pipeline(
    offsets: dict[Any, int], number: int = EPOCH, batch: int = 2
) -> dict[Any, Committed]:
    return {place: Committed(offset, Stamp(number, batch)) for place, offset in offsets.items()}


def written(number: int, batch: int, part: int = 0, **ranges: Any) -> LastWrite:
    spans = ranges.get("ranges") or {P0: (10, 20), P1: (5, 9)}
    return LastWrite(Mark(number, batch, part), spans, ranges.get("topics", {}))


@pytest.mark.parametrize("committed_by", [by_hand, by_pipeline])
@pytest.mark.parametrize(
    ("committed", "done", "delivery", "expected"),
    [
        (END, True, LEAST, True),
        (BEFORE, True, LEAST, False),  # moved back by exactly one batch
        ({P0: 20, P1: 8}, True, LEAST, False),
        (BEFORE, False, LEAST, True),  # killed before the commit
        (END, False, LEAST, True),  # killed after the commit, before Spark noted it
        ({P0: 0, P1: 0}, False, LEAST, False),
        ({}, True, LEAST, True),  # offsets expired: the checkpoint holds
        (END, False, MOST, False),  # committed first: its rows may have been written
        (BEFORE, False, MOST, True),
        ({}, False, MOST, False),  # whether it was committed is not known any more
        ({P0: 10}, False, MOST, False),
        (END, True, MOST, True),
    ],
)
def test_the_epoch_goes_on_where_the_group_is_where_the_pipeline_left_it(
    committed_by: Any, committed: dict[Any, int], done: bool, delivery: Delivery, expected: bool
) -> None:
    known = Witnesses(point(epoch(done=done)), committed_by(committed), None, delivery)
    assert known.goes_on() is expected


@pytest.mark.parametrize(("committed_by", "expected"), [(by_hand, False), (by_pipeline, True)])
def test_a_person_who_moved_some_partitions_to_the_end_of_the_batch_under_way_moved_the_group(
    committed_by: Any, expected: bool
) -> None:
    known = Witnesses(point(epoch(done=False)), committed_by({P0: 10, P1: 9}))
    assert known.goes_on() is expected


def test_a_partition_that_is_new_in_the_batch_starts_at_its_beginning() -> None:
    found = point(epoch(done=False, end=END | {("t", 2): 4}), [P0, P1, ("t", 2)])
    assert Witnesses(found, by_hand(BEFORE | {("t", 2): 0})).goes_on()


def test_an_offset_that_an_earlier_process_committed_late_moves_nothing() -> None:
    late = by_pipeline({P0: 3, P1: 1}, number=EPOCH - 1)
    known = Witnesses(point(epoch(done=True)), late)
    assert known.goes_on()
    assert known.starts() == END


def test_the_same_offset_committed_by_a_person_does() -> None:
    known = Witnesses(point(epoch(done=True)), by_hand({P0: 3, P1: 1}))
    assert not known.goes_on()
    assert known.starts() == {P0: 3, P1: 1}


@pytest.mark.parametrize("number", [EPOCH + 1, EPOCH + 1000])
def test_a_checkpoint_does_not_go_on_after_another_process_took_over(number: int) -> None:
    by_sink = Witnesses(point(epoch(done=True)), by_pipeline(END), written(number, 0), EXACT)
    by_group = Witnesses(point(epoch(done=True)), by_pipeline(END, number=number))
    assert not by_sink.goes_on()
    assert not by_group.goes_on()
    assert by_sink.newest_epoch == by_group.newest_epoch == number


BACK = {P0: 2, P1: 1}


def claimed_by_another(number: int) -> LastWrite:
    """A claim of an epoch after the last write, which is of the epoch before the person's reset."""
    return claimed(written(EPOCH - 1, 7), number, "p")


@pytest.mark.parametrize("number", [EPOCH, EPOCH + 1])
def test_a_reset_that_a_process_took_over_holds_until_something_is_written(number: int) -> None:
    """The group is stamped by then; the claim of a process that died says nothing of its place."""
    taken_over = by_pipeline(BACK, batch=CLAIMED)
    known = Witnesses(point(None), taken_over, claimed_by_another(number), EXACT)
    assert known.starts() == BACK


def test_a_reset_that_a_process_took_over_holds_without_the_group() -> None:
    fresh = SimpleNamespace(
        number=EPOCH, topics=lambda: {"t": "id"}, last=lambda: None, start=lambda: BACK
    )
    known = Witnesses(point(fresh), {}, claimed_by_another(EPOCH), EXACT)
    assert known.starts() == BACK


def test_a_partition_that_was_not_written_since_the_reset_is_read_from_there() -> None:
    """Partitions are written one by one into Kafka: the others have the mark of an earlier epoch."""
    some = replace(written(EPOCH, 0, ranges={P0: (2, 6), P1: (5, 9)}), marks={P1: Mark(99, 7, 0)})
    known = Witnesses(point(None), by_pipeline(BACK, batch=CLAIMED), some, EXACT)
    assert known.starts() == {P0: 6, P1: 1}


def test_a_write_of_a_later_epoch_counts_more_than_what_an_earlier_process_commits_late() -> None:
    """Also where that is further: a person had moved the group back before the later epoch."""
    late = by_pipeline({P0: 99, P1: 99}, number=EPOCH - 1)
    known = Witnesses(point(None), late, written(EPOCH, 0, ranges={P0: (0, 4), P1: (0, 2)}), EXACT)
    assert known.starts() == {P0: 4, P1: 2}


def test_only_the_last_write_may_lack_dead_letters() -> None:
    """All batches before it were finished with theirs, whatever an earlier process commits late."""
    late = by_pipeline({P0: 0, P1: 0}, number=EPOCH - 1, batch=CLAIMED)
    known = Witnesses(point(None), late, written(EPOCH, 1), EXACT)
    assert known.starts() == END
    assert known.unfinished(END) == {P0: (10, 20), P1: (5, 9)}


def test_without_a_checkpoint_the_sink_shows_that_the_last_batch_was_written() -> None:
    known = Witnesses(point(None), by_pipeline(BEFORE), written(EPOCH, 3), EXACT)
    assert known.starts() == END
    assert known.unfinished(END) == {P0: (10, 20), P1: (5, 9)}


def test_a_sink_that_wrote_some_partitions_only_is_asked_partition_by_partition() -> None:
    some = written(EPOCH, 3, ranges={P0: (20, 20), P1: (5, 5)})
    known = Witnesses(point(None), by_pipeline(BEFORE), some, EXACT)
    assert known.starts() == {P0: 20, P1: 5}
    assert known.unfinished(known.starts()) == {P0: (10, 20)}


def test_with_neither_checkpoint_nor_group_the_sink_alone_decides() -> None:
    assert Witnesses(point(None), {}, written(EPOCH, 3), EXACT).starts() == END


def test_a_person_wins_over_the_sink() -> None:
    known = Witnesses(point(None), by_hand(BEFORE), written(EPOCH, 3), EXACT)
    assert known.starts() == BEFORE
    assert known.unfinished(BEFORE) == {}


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("delivery", [LEAST, MOST, EXACT])
@pytest.mark.parametrize("offsets", [BEFORE, END])
def test_offsets_that_a_person_took_away_win_over_checkpoint_and_sink(
    offsets: dict[Any, int], delivery: Delivery, done: bool
) -> None:
    """Also where they were: the place of such a commit says nothing."""
    taken = {place: Committed.read(offset, STARTS_OVER) for place, offset in offsets.items()}
    parts = written(EPOCH, 4, part=1)
    known = Witnesses(point(epoch(done=done)), taken, parts, delivery)
    assert not known.goes_on()
    assert (known.starts(), known.half_written()) == ({}, [])
    assert sorted(known.starting_over()) == [P0, P1]


def test_a_start_that_was_committed_after_the_claim_wins_over_writes_before_it() -> None:
    reset = by_pipeline({P0: 0, P1: 0}, number=EPOCH, batch=CLAIMED)
    known = Witnesses(point(None), reset, written(EPOCH, CLAIMED), EXACT)
    assert known.starts() == {P0: 0, P1: 0}


def test_ranges_of_a_topic_that_was_recreated_say_nothing() -> None:
    old = written(EPOCH, 3, topics={"t": "id"})
    assert Witnesses(point(None, topic="another"), {}, old, EXACT).starts() == {}


def test_at_most_once_does_not_read_an_unfinished_batch_again_when_the_group_is_gone() -> None:
    known = Witnesses(point(epoch(done=False)), {}, None, MOST)
    assert known.starts() == END


def test_unmoved_partitions_continue_by_the_checkpoint_when_others_were_moved() -> None:
    known = Witnesses(point(epoch(done=True)), by_hand({P0: 0}))
    assert known.starts() == {P0: 0, P1: 9}


@pytest.mark.parametrize(
    ("committed", "half"),
    [
        (by_pipeline(BEFORE, batch=2), [P0, P1]),  # killed between two parts, and the plan is gone
        (by_pipeline(END, batch=3), []),  # the batch is complete
        (by_hand(BEFORE), []),  # a person decided
        ({}, [P0, P1]),
        (by_hand({P0: 0}) | by_pipeline({P1: 5}, batch=2), [P1]),
    ],
)
def test_a_batch_that_was_left_in_parts_is_noticed(committed: Any, half: list[Any]) -> None:
    assert Witnesses(point(None), committed, written(EPOCH, 3, 2), EXACT).half_written() == half
