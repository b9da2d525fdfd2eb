"""Which reason an error of a pipeline is counted as."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from penstock.engine import Progress
from penstock.engine.restart_reason import JavaDiedError, RestartReason, restart_reason
from penstock.engine.topic_watcher import MovedError
from penstock.errors import (
    FencedError,
    PenstockError,
    PipelineFailedError,
    SchemaChangedError,
    TransientError,
)
from penstock.imports.import_running import ImportRunning
from penstock.pipeline.definition import Restart


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TransientError("away"), "unavailable"),
        (MovedError("recreated"), "topics_changed"),
        (SchemaChangedError("newer"), "schema_changed"),
        (JavaDiedError("killed by signal 9"), "java_died"),
        (PipelineFailedError("no column"), "failed"),
        (FencedError("another"), "failed"),
        (PenstockError("anything"), "failed"),
    ],
)
def test_each_error_has_one_reason(error: PenstockError, reason: str) -> None:
    assert restart_reason(error).value == reason


def test_reasons_are_safe_as_labels_and_fit_into_the_store() -> None:
    assert all(reason.value.isidentifier() and len(reason.value) <= 40 for reason in RestartReason)


def test_an_import_counts_an_outage_once_and_each_failure() -> None:
    running = ImportRunning.__new__(ImportRunning)
    restart = Restart(limit=2, wait=0.001, longest=0.001)
    running.pipeline = SimpleNamespace(name="p", restart=restart)  # type: ignore[assignment]
    running._once, running._in_a_row, running._failures = False, 0, 0
    running._reasons, running._progress = Counter(), Progress("p")
    for _ in range(3):
        running._after(TransientError("away"))
    for _ in range(2):
        running._after(JavaDiedError("killed"))
    assert running._after(PipelineFailedError("for good")) is None

    assert running._reasons == {"unavailable": 1, "java_died": 2}


def test_java_that_dies_does_not_end_an_import_that_no_failure_may_restart() -> None:
    running = ImportRunning.__new__(ImportRunning)
    restart = Restart(limit=0, wait=0.001, longest=0.001)
    running.pipeline = SimpleNamespace(name="p", restart=restart)  # type: ignore[assignment]
    running._once, running._in_a_row, running._failures = False, 0, 0
    running._reasons, running._progress = Counter(), Progress("p")
    assert [running._after(JavaDiedError("killed")) for _ in range(6)] == [0.001] * 5 + [None]
    running._failures = 0
    assert running._after(PipelineFailedError("broken")) is None
