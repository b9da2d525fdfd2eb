"""How long a pipeline waits before it starts again."""

from __future__ import annotations

import pytest

from penstock.engine.running import pause_before
from penstock.errors import PenstockError, PipelineFailedError, TransientError
from penstock.pipeline.definition import Restart


@pytest.mark.parametrize(
    ("failures", "error", "seconds"),
    [
        (1, TransientError("away", retry_after=60), 60),
        (9, TransientError("away", retry_after=60), 60),
        (1, TransientError("away", retry_after=0.1), 2),
        (3, TransientError("away"), 8),
        (3, PipelineFailedError("broken"), 8),
    ],
)
def test_a_system_that_asks_for_time_gets_at_least_that_time(
    failures: int, error: PenstockError, seconds: float
) -> None:
    assert pause_before(failures, error, Restart(wait=2, longest=30)) == seconds
