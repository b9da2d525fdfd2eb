"""Windows over real topics: what is summed up, what is late, and what state outlives."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.integration.stateful.flows import SCHEMA, dead, run_once, second, trade, windows

from penstock import Admin, Connection, memory_table
from penstock.errors import ConfigError
from penstock.pipeline import Step
from penstock.testing import fill

SUMS = {"n": "count(*)", "total": "sum(size)"}


def summed(pipeline: Any, topic: str, folder: Any, *steps: Any, **options: Any) -> Any:
    window = {"time": "time", "window": "10s", "by": "symbol", "values": SUMS} | options
    return pipeline(
        source={"kafka": {"topics": topic, "max_records_per_batch": 4}},
        decode={"json": {"schema": SCHEMA}},
        steps=[*steps, {"aggregate": window}],
        sink={"files": str(folder / "table")},
        delivery="exactly-once",
    )


def test_a_window_is_given_out_once_when_it_is_over(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    trades = [trade(n, n, "AB"[n % 2], size=n) for n in range(30)]
    fill(connection, topic(), trades)
    definition = summed(pipeline, topic(), tmp_path)

    progress = run_once(definition)

    assert windows(tmp_path / "table") == [
        (0, 10, "A", 5, 20), (0, 10, "B", 5, 25),
        (10, 20, "A", 5, 70), (10, 20, "B", 5, 75),
    ]  # fmt: skip
    assert (progress.records, progress.rows, progress.failed) == (30, 4, 0)
    with Admin(connection) as admin:
        assert admin.committed(definition.group_id) == {(topic(), 0): 30}


def test_late_rows_rows_without_a_time_and_broken_ones_are_dead_letters(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    late, in_time, timeless = trade(90, 5), trade(91, 21), trade(92, None)
    first = [trade(n, n) for n in (1, 2, 3, 25)]
    # The watermark that a batch's rows are held against is that of the batch before.
    second_batch = [trade(n, n) for n in (26, 27, 28, 29)]
    third = [late, in_time, timeless, b"no json"]
    fill(connection, topic(), [*first, *second_batch, *third, trade(93, 60), *[trade(94, 61)] * 7])
    definition = summed(pipeline, topic(), tmp_path)

    progress = run_once(definition)

    assert windows(tmp_path / "table") == [(0, 10, "A", 3, 3), (20, 30, "A", 6, 6)]
    assert progress.failed == 3
    found = dead(connection, definition)
    assert sorted((stage, value) for stage, value, _ in found) == [
        ("decode", b"no json"),
        ("late", orjson.dumps(late)),
        ("late", orjson.dumps(timeless)),
    ]
    errors = {value: error for _, value, error in found}
    assert "LateError: time is 2024-01-01 00:00:05, and all up to" in errors[orjson.dumps(late)]
    assert errors[orjson.dumps(timeless)] == "NoTimeError: time is null"


def test_a_late_row_is_found_through_the_steps_before(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    late, filtered = trade(8, 2), trade(9, 3, symbol="no")
    batches = [[trade(n, n + 20) for n in range(4)], [trade(n, 30 + n) for n in range(4)]]
    fill(
        connection,
        topic(),
        [*batches[0], *batches[1], late, filtered, trade(10, 70), trade(11, 71)],
    )
    definition = summed(
        pipeline,
        topic(),
        tmp_path,
        {"sql": "SELECT symbol, size * 2 AS size, time AS moment FROM rows WHERE symbol <> 'no'"},
        {"python": {"function": same, "schema": "symbol string, size int, time timestamp"}},
    )

    run_once(definition)

    assert [(stage, value) for stage, value, _ in dead(connection, definition)] == [
        ("late", orjson.dumps(late))
    ]


def same(table: Any) -> Any:
    return table.rename_columns({"moment": "time"})


def test_rows_may_be_late_by_as_much_as_is_allowed(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    seconds = [1, 12, 13, 14, 24, 25, 26, 27, 2, 28, 28, 28, 80, 81, 82, 83, 84, 85, 86, 87]
    fill(connection, topic(), [trade(n, at) for n, at in enumerate(seconds)])
    progress = run_once(summed(pipeline, topic(), tmp_path, late="30s"))

    assert windows(tmp_path / "table")[0] == (0, 10, "A", 2, 2)
    assert progress.failed == 0


def test_sliding_windows_overlap(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), [trade(n, at) for n, at in enumerate((1, 7, 40))])
    run_once(summed(pipeline, topic(), tmp_path, slide="5s"))

    assert windows(tmp_path / "table") == [
        (-5, 5, "A", 1, 1), (0, 10, "A", 2, 2), (5, 15, "A", 1, 1),
    ]  # fmt: skip


def test_a_session_ends_with_a_pause(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), [trade(n, at) for n, at in enumerate((0, 4, 8, 30, 33, 90))])
    run_once(summed(pipeline, topic(), tmp_path, window=None, session="5s"))

    assert windows(tmp_path / "table") == [(0, 13, "A", 3, 3), (30, 38, "A", 2, 2)]


def test_changes_replace_rows_by_key(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), [trade(n, n) for n in range(12)])
    definition = pipeline(
        source={"kafka": {"topics": topic(), "max_records_per_batch": 4}},
        decode={"json": {"schema": SCHEMA}},
        steps=[
            {
                "aggregate": {
                    "time": "time", "window": "10s", "by": "symbol", "values": SUMS, "emit": "changes",
                }
            }
        ],
        sink={"memory": {"table": unique, "mode": "upsert", "key": ["window_start", "symbol"]}},
    )  # fmt: skip

    run_once(definition)

    rows = memory_table(unique).to_arrow().to_pylist()
    assert sorted((second(row["window_start"]), row["n"]) for row in rows) == [(0, 10), (10, 2)]


def test_state_goes_on_after_a_stop_and_a_change_of_a_step_without_state(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), [trade(n, n) for n in range(5)])
    run_once(summed(pipeline, topic(), tmp_path))
    fill(connection, topic(), [trade(n, n) for n in (5, 6, 7, 30)])

    twice = {"sql": "SELECT id, symbol, size * 10 AS size, time FROM rows"}
    run_once(summed(pipeline, topic(), tmp_path, twice))

    assert windows(tmp_path / "table") == [(0, 10, "A", 8, 5 + 30)]


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by": []}, "'by' of 'aggregate' was 'symbol string', and is ''"),
        ({"window": "20s"}, "'window' of 'aggregate' was"),
        ({"values": {"n": "count(*)"}}, "'values' of 'aggregate' was"),
    ],
)
def test_a_change_that_state_cannot_survive_is_refused(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any, change: Any, said: str
) -> None:
    fill(connection, topic(), [trade(n, n) for n in range(5)])
    run_once(summed(pipeline, topic(), tmp_path))

    with pytest.raises(ConfigError) as refused:
        run_once(summed(pipeline, topic(), tmp_path, **change))
    assert said in str(refused.value)
    assert "another name" in str(refused.value)


class Bare(Step):
    """Selects columns, and forgets where its rows came from."""

    name = "bare"

    def apply(self, rows: Any) -> Any:
        return rows.select("time", "symbol", "size")

    def mixes(self) -> str | None:
        return None


def test_a_step_before_state_must_keep_of_which_record_a_row_was_made(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), [trade(1, 1)])
    with pytest.raises(ConfigError, match=r"steps\[0\] \(bare\) .* must define traced\(rows\)"):
        run_once(summed(pipeline, topic(), tmp_path, Bare()))
