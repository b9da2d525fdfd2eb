"""One sentence out of pages of Java and Python."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.engine.reasons import failure, is_transient, reason, refusal
from penstock.errors import RefusedError, SetupError, TransientError


def test_the_log_is_named_and_secrets_are_not() -> None:
    error = failure(ValueError("broken sasl.password=hunter2 end"), "p", Path("/logs/spark.log"))
    assert str(error).startswith("pipeline 'p' failed: ")
    assert "/logs/spark.log" in str(error)
    assert "hunter2" not in str(error)


def test_our_own_errors_stay_as_they_are() -> None:
    own = SetupError("no Java")
    assert failure(own, "p", None) is own


def test_an_error_of_python_is_named_with_the_first_line_of_its_text() -> None:
    assert reason(ValueError("one\ntwo")) == "ValueError: one"
    assert reason(ValueError()) == "ValueError"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_waited_for(number: int) -> None:
    assert is_transient(OSError(number, "no"))
    assert not is_transient(OSError(errno.EACCES, "No space left on device"))


def test_what_a_sink_refuses_has_the_stage_that_its_error_has() -> None:
    assert refusal(RefusedError("no")) == ("write", "RefusedError", "no")
    assert refusal(RefusedError("no", stage="step")) == ("step", "RefusedError", "no")
    assert refusal(TransientError("away")) is None
