"""Counts that Spark makes while it writes: a result, an error, or none at all."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from penstock.engine import counting
from penstock.engine.counting import counted
from penstock.errors import PipelineFailedError


class Observed:
    """An observation with an answer, an error, or neither: as PySpark's, over a row in Java."""

    def __init__(self, answer: Any = None) -> None:
        self._answer = answer
        self._jo = self

    def getRow(self) -> Observed:  # noqa: N802
        if self._answer is None:
            Event().wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self

    def length(self) -> int:
        return len(self._answer)

    @property
    def get(self) -> Any:
        assert self._answer
        return self._answer


def test_the_counts_are_returned() -> None:
    assert counted(Observed({"rows": 3})) == {"rows": 3}  # type: ignore[arg-type]


def test_counts_that_spark_left_out_of_its_plan_are_none() -> None:
    assert counted(Observed({})) is None  # type: ignore[arg-type]


def test_an_error_of_spark_is_raised() -> None:
    with pytest.raises(ConnectionError, match="Java is gone"):
        counted(Observed(ConnectionError("Java is gone")))  # type: ignore[arg-type]


def test_a_sink_that_ran_no_action_is_reported_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "_DEADLINE", 0.05)
    with pytest.raises(PipelineFailedError, match="in one Spark action"):
        counted(Observed())  # type: ignore[arg-type]
