"""A batch of stateful steps: what was observed of its rows, what is late, and a row that is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql.types import StructType

from penstock.engine import stream
from penstock.engine.counting import Failures
from penstock.engine.stateful import late_rows
from penstock.engine.stateful.branch_metrics import BranchMetrics, branch_metrics
from penstock.engine.stateful.plan import Branch, Plan
from penstock.engine.stateful.stateful_writing import StatefulWriting
from penstock.errors import ConfigError, PipelineFailedError, RefusedError
from penstock.pipeline import FAILED, ORIGIN, Batch


def query(**observed: tuple[int | None, int | None]) -> Any:
    """Return a query of which Spark has these counts."""

    def get(name: str) -> Any:
        values = observed.get(name.replace("-", "_"))
        row = SimpleNamespace(isNullAt=lambda n: values[n] is None, getLong=lambda n: values[n])
        return SimpleNamespace(isDefined=lambda: values is not None, get=lambda: row)

    execution = SimpleNamespace(observedMetrics=lambda: SimpleNamespace(get=get))
    java = SimpleNamespace(streamingQuery=lambda: SimpleNamespace(lastExecution=lambda: execution))
    return SimpleNamespace(_jsq=java)


def branch(number: int = 0, steps: Any = ()) -> Branch:
    return Branch(number, MagicMock(), MagicMock(), steps, None, "at")


def test_the_counts_of_each_branch_are_its_own() -> None:
    observed = query(decoded_0=(2, 99), timed_0=(1, 5), decoded_1=(0, None), timed_1=(0, None))
    assert branch_metrics(observed, branch(0)) == BranchMetrics(Failures(2, 99), 1, 5)
    assert branch_metrics(observed, branch(1)) == BranchMetrics(Failures(0, 0), 0, None)
    assert branch_metrics(query(), branch(0)) == BranchMetrics(Failures(0, 0), 0, None)


@pytest.mark.parametrize(
    ("timeless", "least", "late"),
    [(0, None, False), (0, 11, False), (0, 10, True), (1, None, True), (1, 11, True)],
)
def test_a_row_is_late_up_to_the_watermark_or_without_a_time(
    timeless: int, least: int | None, late: bool
) -> None:
    assert BranchMetrics(Failures(), timeless, least).any_late(10) is late


def test_a_step_that_loses_the_origin_of_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_rows, "f", MagicMock())  # Spark's functions need a running Spark

    def step(*columns: str) -> Any:
        frame = SimpleNamespace(columns=columns)
        return SimpleNamespace(traced=lambda _: frame, step=SimpleNamespace(name="mine"))

    keeps = step("n", *ORIGIN)
    assert late_rows.traced(branch(steps=(keeps,)), MagicMock()).columns == ("n", *ORIGIN)
    with pytest.raises(ConfigError, match=r"steps\[1\] \(mine\) does not keep of which record"):
        late_rows.traced(branch(steps=(keeps, step("n", *ORIGIN[:2]))), MagicMock())


def test_a_refused_row_of_many_records_fails_the_pipeline_and_names_the_reason() -> None:
    claims = MagicMock()
    claims.writers.rows.write.side_effect = RefusedError("the column 'n' is too small")
    writing = StatefulWriting(
        MagicMock(), Plan((branch(),)), MagicMock(), MagicMock(), records=MagicMock(), claims=claims
    )
    batch = Batch(MagicMock(), "p", 1, 4, None)  # type: ignore[arg-type]
    with pytest.raises(PipelineFailedError, match=r"a row of batch 4 was refused.*too small.*fix"):
        writing._write(batch, known=False)


def test_rows_that_the_sink_has_are_run_for_their_state_and_not_written() -> None:
    claims, rows = MagicMock(), MagicMock()
    writing = StatefulWriting(
        MagicMock(), Plan((branch(),)), MagicMock(), MagicMock(), records=MagicMock(), claims=claims
    )
    writing._write(Batch(rows, "p", 1, 4, None), known=True)  # type: ignore[arg-type]
    rows.write.format.assert_called_once_with("noop")
    claims.writers.rows.write.assert_not_called()


def test_without_stateful_steps_the_batches_have_decoded_records() -> None:
    plan = Plan((branch(),))
    decoded = SimpleNamespace(schema=StructType().add("n", "integer").add(FAILED, "long"))
    plan.branches[0].decode.decode.return_value = decoded  # type: ignore[attr-defined]
    rows, shapes = stream.streamed(plan, [MagicMock()])
    assert (rows, shapes) == (decoded, [])
    assert stream.columns_after(plan, rows).names == ["n"]
