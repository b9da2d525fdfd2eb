"""What a mark that is found says about the records of a task."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.config import Connection
from penstock.errors import TerminalError
from penstock.pipeline import Batch, Mark
from penstock.pipeline.source_log import Span
from penstock.sinks.kafka.task_marks import Stored, TaskScope, scopes_abroad, scopes_of

SPAN = Span("t", 0, 10, 20)
NOW = Mark(1, 5, 0)


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        (None, False),
        (Stored(10, Mark(1, 4, 0)), False),
        (Stored(20, Mark(1, 5, 0)), True),
        (Stored(30, Mark(1, 6, 0)), True),
        # Before a user reset the offsets of the group: those records are read again.
        (Stored(99, Mark(0, 99, 0)), False),
    ],
)
def test_a_write_is_known_by_its_mark(stored: Stored | None, written: bool) -> None:
    found = {} if stored is None else {("t", 0): stored}
    assert TaskScope("x", "g", (SPAN,)).is_written(found, NOW) is written


@pytest.mark.parametrize(("offset", "written"), [(10, False), (20, True), (25, True)])
def test_a_part_is_written_if_an_earlier_write_of_its_batch_went_as_far(
    offset: int, written: bool
) -> None:
    found = {("t", 0): Stored(offset, Mark(1, 5, 0))}
    assert TaskScope("x", "g", (SPAN,)).is_written(found, Mark(1, 5, 3)) is written


def test_a_record_that_was_refused_before_is_written_only_if_its_own_mark_is_there() -> None:
    """A mark after it is of parts that were written while it was refused."""
    scope = TaskScope("x", "g", (Span("t", 0, 12, 13),), again=True)
    assert not scope.is_written({("t", 0): Stored(20, Mark(1, 5, 4))}, Mark(1, 5, 9))
    assert scope.is_written({("t", 0): Stored(13, Mark(1, 5, 9))}, Mark(1, 5, 9))


def test_parts_without_offsets_are_distinguished_by_their_numbers() -> None:
    scope = TaskScope("x", "g", (Span("out", 0, 0, 0),))
    found = {("out", 0): Stored(0, Mark(1, 5, 1))}
    assert scope.is_written(found, Mark(1, 5, 1))
    assert not scope.is_written(found, Mark(1, 5, 2))


@pytest.mark.parametrize(
    "found",
    [
        {("t", 0): Stored(20, Mark(1, 5, 0))},
        {("t", 0): Stored(15, Mark(1, 5, 0)), ("t", 1): Stored(0, Mark(1, 4, 0))},
    ],
)
def test_what_other_tasks_wrote_in_part_is_refused(found: dict[tuple[str, int], Stored]) -> None:
    scope = TaskScope("x", "g", (SPAN, Span("t", 1, 0, 9)))
    with pytest.raises(TerminalError, match="changed in the middle of a batch"):
        scope.is_written(found, Mark(1, 5, 1))


def batch(**more: Any) -> Batch:
    return Batch(None, "p", 0, 0, Connection(brokers="nowhere:1"), **more)  # type: ignore[arg-type]


def test_each_task_has_a_transaction_of_its_own_or_the_batch_has_one() -> None:
    ranges = {("t", 0): (0, 5), ("t", 1): (3, 3)}
    spans = [Span("t", 0, 0, 5)]
    assert scopes_of(batch(ranges=ranges), "out", spans) == [
        TaskScope("p.sink.t-0", "p.sink", (Span("t", 0, 0, 5),))
    ]
    assert scopes_of(batch(ranges=ranges), "out", None) == [
        TaskScope("p.sink", "p.sink", (Span("t", 0, 0, 5),))
    ]
    assert scopes_of(batch(), "out", None) == [
        TaskScope("p.sink", "p.sink", (Span("out", 0, 0, 0),))
    ]


def test_on_another_cluster_each_partition_of_the_source_has_a_group() -> None:
    assert scopes_abroad(batch(), "out", [Span("t", 0, 3, 5)]) == [
        TaskScope("p.sink.t-0", "p.sink.t-0", (Span("out", 0, 3, 5),))
    ]
    assert scopes_abroad(batch(), "out", None) == [
        TaskScope("p.sink", "p.sink", (Span("out", 0, 0, 0),))
    ]
