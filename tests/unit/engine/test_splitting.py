"""A batch in parts: what is refused once more than allowed is refused is undecided again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.batch_writing import Splitting
from penstock.engine.counting import Failures, Written
from penstock.errors import PipelineFailedError, RefusedError
from penstock.pipeline import Batch, Mark
from penstock.pipeline.source_log import Span
from penstock.pipeline.storage import Folder
from penstock.sinks.kafka.task_marks import Stored, TaskScope

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))
NO_ROWS: Any = None


class Table:
    """A sink that has each mark once, and refuses the given rows."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.offsets: list[int] = []
        self.marks: list[Mark] = []

    def write(self, part: Batch) -> Written:
        ((start, end),) = part.ranges.values()
        if self.marks and part.mark <= self.marks[-1]:
            return Written(0, Failures())
        if refused := self.bad & set(range(start, end)):
            raise RefusedError(f"no room for {min(refused)}")
        self.offsets += range(start, end)
        self.marks.append(part.mark)
        return Written(end - start, Failures())


def splitting(folder: Path, table: Table, most: int) -> Splitting:
    connection: Any = None
    batch = Batch(NO_ROWS, "p", 7, 3, connection, ranges={("t", 0): (0, 32)})
    return Splitting(Folder(SPARK, str(folder)), batch, table.write, most)


def test_after_too_many_refusals_and_a_fix_the_refused_records_are_tried_again(
    tmp_path: Path,
) -> None:
    table = Table(bad={3, 4, 9, 20, 21, 30})
    with pytest.raises(PipelineFailedError, match="more than 3 records of batch 3 were refused"):
        splitting(tmp_path, table, most=3).run()
    written = list(table.offsets)

    table.bad = {9}
    done = splitting(tmp_path, table, most=3).run()

    assert sorted(table.offsets) == [n for n in range(32) if n != 9]
    assert table.offsets[: len(written)] == written
    assert [refused.offset for refused in done.refused] == [9]
    assert done.rows == 31
    assert table.marks == sorted(set(table.marks))


def test_a_definition_that_is_not_fixed_fails_again_and_writes_nothing_twice(
    tmp_path: Path,
) -> None:
    table = Table(bad={3, 4, 9, 20, 21, 30})
    for _ in range(3):
        with pytest.raises(PipelineFailedError, match="were refused"):
            splitting(tmp_path, table, most=3).run()

    done = splitting(tmp_path, table, most=6).run()

    assert sorted(table.offsets) == [n for n in range(32) if n not in table.bad]
    assert {refused.offset for refused in done.refused} == table.bad
    assert done.rows == 26


def test_refused_records_stay_refused_where_the_limit_is_kept_and_the_process_dies(
    tmp_path: Path,
) -> None:
    table = Table(bad={3, 20})

    def dies_late(part: Batch) -> Written:
        if part.ranges[("t", 0)][0] > 20:
            raise KeyboardInterrupt
        return table.write(part)

    first = splitting(tmp_path, table, most=3)
    first._write = dies_late
    with pytest.raises(KeyboardInterrupt):
        first.run()
    table.bad = set()
    done = splitting(tmp_path, table, most=3).run()

    assert {refused.offset for refused in done.refused} == {3, 20}
    assert sorted(table.offsets) == [n for n in range(32) if n not in (3, 20)]


def test_the_mark_of_a_part_in_kafka_says_nothing_of_earlier_records_that_were_refused() -> None:
    stored = {("t", 0): Stored(10, Mark(7, 3, 5))}
    refused_before = TaskScope("p.sink", "p.sink", (Span("t", 0, 4, 5),), again=True)
    assert not refused_before.is_written(stored, Mark(7, 3, 9))
    assert refused_before.is_written(stored | {("t", 0): Stored(5, Mark(7, 3, 9))}, Mark(7, 3, 9))
    half_of_what_a_task_wrote = TaskScope("p.sink", "p.sink", (Span("t", 0, 4, 5),))
    assert half_of_what_a_task_wrote.is_written(stored, Mark(7, 3, 9))
