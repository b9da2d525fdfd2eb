"""When the checkpoint holds, and when the group's offsets win."""

from __future__ import annotations

import pytest

from penstock.engine.checkpoint import Planned
from penstock.engine.positions import goes_on
from penstock.pipeline import Delivery

BEFORE = {("t", 0): 10, ("t", 1): 5}
END = {("t", 0): 20, ("t", 1): 9}
LEAST, MOST = Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE


@pytest.mark.parametrize(
    ("committed", "done", "delivery", "expected"),
    [
        (END, True, LEAST, True),
        (BEFORE, True, LEAST, False),  # moved back by exactly one batch
        ({("t", 0): 20, ("t", 1): 8}, True, LEAST, False),
        (BEFORE, False, LEAST, True),  # killed before the commit
        (END, False, LEAST, True),  # killed after the commit, before Spark noted it
        ({("t", 0): 10, ("t", 1): 9}, False, LEAST, True),
        ({("t", 0): 0, ("t", 1): 0}, False, LEAST, False),
        ({}, True, LEAST, True),  # offsets expired: the checkpoint holds
        (END, False, MOST, False),  # committed first: its rows may be out already
        (BEFORE, False, MOST, True),
        (END, True, MOST, True),
    ],
)
def test_the_group_is_where_the_pipeline_left_it(
    committed: dict[tuple[str, int], int], done: bool, delivery: Delivery, expected: bool
) -> None:
    assert goes_on(committed, BEFORE, Planned(3, END, done), delivery) is expected


def test_a_partition_that_is_new_in_the_batch_starts_at_its_beginning() -> None:
    end = END | {("t", 2): 4}
    assert goes_on(BEFORE | {("t", 2): 0}, BEFORE, Planned(3, end, False), LEAST)
