"""How often, and after how long a wait, a pipeline is started again."""

from __future__ import annotations

from collections import Counter
from threading import Event
from types import SimpleNamespace

import pytest

from penstock.engine.progress import Progress
from penstock.engine.running import Running, pause_before
from penstock.errors import PenstockError, PipelineFailedError, TransientError
from penstock.pipeline.definition import Restart


@pytest.mark.parametrize(
    ("failures", "error", "seconds"),
    [
        (1, TransientError("away", retry_after=60), 60),
        (9, TransientError("away", retry_after=60), 60),
        (1, TransientError("away", retry_after=0.1), 2),
        (1, TransientError("away", retry_after=1e20), 86_400),
        (1, TransientError("away", retry_after=float("inf")), 86_400),
        (3, TransientError("away"), 8),
        (3, PipelineFailedError("broken"), 8),
    ],
)
def test_a_system_that_asks_for_time_gets_at_least_that_time(
    failures: int, error: PenstockError, seconds: float
) -> None:
    assert pause_before(failures, error, Restart(wait=2, longest=30)) == seconds


def test_waiting_for_another_system_is_not_counted_as_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that was away for long, and then a failure: the pipeline is still started again."""
    outcomes: list[PenstockError | None] = [
        *[TransientError("away")] * 9,
        PipelineFailedError("killed"),
        None,
    ]
    running = Running.__new__(Running)
    restart = Restart(limit=2, wait=0.001, longest=0.001)
    running.pipeline = SimpleNamespace(name="p", restart=restart)  # type: ignore[assignment]
    running._asked_to_stop, running._once, running._error = Event(), False, None
    running._restarts = running._in_a_row = running._failures = 0
    running._reasons = Counter()
    running._attempt = SimpleNamespace(progress=Progress("p"))  # type: ignore[assignment]

    def replace() -> None:
        if error := outcomes.pop(0):
            raise error

    monkeypatch.setattr(running, "_replace_attempt", replace)
    assert running._again(TransientError("away"))
    outcomes[:] = [PipelineFailedError("killed")] * 9
    assert not running._again(PipelineFailedError("killed"))
    assert len(outcomes) == 8
    # Each end of a run has one reason, however long the next start is waited for.
    assert running._reasons == {"unavailable": 1, "failed": 1}
