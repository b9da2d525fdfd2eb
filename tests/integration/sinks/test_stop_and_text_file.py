"""The sinks `stop`, for dead letters that must end a pipeline, and `text_file`, which appends lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Connection, State, start
from penstock.errors import PipelineFailedError
from penstock.kafka import GroupOffsets
from penstock.testing import fill


def test_a_bad_record_ends_the_pipeline_and_is_not_passed_over(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Path
) -> None:
    fill(connection, topic(), [{"n": 1}, "oops", {"n": 2}])
    lines = tmp_path / "lines"
    made = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int"}},
        sink={"text_file": {"path": str(lines), "column": "n"}},
        dead_letters={"stop": {}},
        restart={"limit": 0},
    )
    with start(made, once=True) as running:
        with pytest.raises(
            PipelineFailedError, match=rf"the record {topic()}-0-1 ends the pipeline"
        ):
            running.wait(120)
        assert running.progress().state is State.FAILED
    with Admin(connection) as admin:
        assert admin.committed(made.group_id) in ({}, {(topic(), 0): 0})

    # An operator moves the group past the record, and it goes on.
    with GroupOffsets(connection, made.group_id) as offsets:
        offsets.commit({(topic(), 0): 2})
    with start(made, once=True) as running:
        assert running.wait(120)
    assert lines.read_text().splitlines()[-1] == "2"


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_without_a_bad_record_nothing_is_different(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Path, delivery: str
) -> None:
    fill(connection, topic(), [{"n": 1}])
    made = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int"}},
        sink={"files": str(tmp_path / "table")},
        dead_letters={"stop": {}},
        delivery=delivery,
    )
    with start(made, once=True) as running:
        assert running.wait(120)
    assert running.progress().rows == 1


def test_lines_are_appended_in_their_order(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Path
) -> None:
    path = tmp_path / "out.txt"
    made = pipeline(source={"kafka": topic()}, decode="text", sink={"text_file": str(path)})
    for first in (0, 5):
        fill(connection, topic(), [f"line {n}, \u00e4" for n in range(first, first + 5)])
        with start(made, once=True) as running:
            assert running.wait(120)
    assert path.read_text().splitlines() == [f"line {n}, \u00e4" for n in range(10)]


def test_what_a_kill_left_of_a_line_does_not_become_the_beginning_of_the_next(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Path
) -> None:
    path = tmp_path / "out.txt"
    path.write_text("line 0\nlin")
    fill(connection, topic(), ["line 1", "line 2"])
    made = pipeline(source={"kafka": topic()}, decode="text", sink={"text_file": str(path)})
    with start(made, once=True) as running:
        assert running.wait(120)
    assert path.read_text() == "line 0\nlin\nline 1\nline 2\n"


def test_a_column_that_is_not_there_is_refused(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Path
) -> None:
    fill(connection, topic(), [{"n": 1}])
    made = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int"}},
        sink={"text_file": str(tmp_path / "out.txt")},
        restart={"limit": 0},
    )
    with (
        start(made, once=True) as running,
        pytest.raises(
            Exception, match="have no column 'value', which 'text_file' writes; they have n"
        ),
    ):
        running.wait(120)
