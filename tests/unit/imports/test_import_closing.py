"""The end of an import: everything is closed, also where closing some of it fails."""

from __future__ import annotations

import pytest

from penstock.errors import TransientError
from penstock.imports import ImportRunning


class Closed:
    """Something that is closed, and may fail at that."""

    def __init__(self, name: str, done: list[str], error: Exception | None = None) -> None:
        self.name, self.done, self.error = name, done, error

    def close(self) -> None:
        self.done.append(self.name)
        if self.error:
            raise self.error

    stop = close


@pytest.mark.parametrize("failing", [None, "system", "rounds", "intake"])
def test_the_pipeline_behind_is_stopped_whatever_fails_before(failing: str | None) -> None:
    done: list[str] = []
    names = ("system", "rounds", "intake", "behind")
    parts = {
        name: Closed(name, done, TransientError("away") if name == failing else None)
        for name in names
    }
    running = ImportRunning.__new__(ImportRunning)
    for name, part in parts.items():
        setattr(running, f"_{name}", part)
    if failing:
        with pytest.raises(TransientError, match="away"):
            running._close()
    else:
        running._close()
    assert done == [*names]
