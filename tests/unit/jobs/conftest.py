"""Jobs without Spark: a store of its own for each test, and runs that do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from penstock.control.job_spec import JobSpec
from penstock.control.store.rows import Desired
from penstock.engine import Progress, State
from penstock.jobs import Store, hosting

OPTIONS = {"as_table": False, "batch_size": 0, "throttle": 1.0, "auto_commit": True}


class Idle:
    """A running pipeline without records."""

    def __init__(self) -> None:
        self.ended, self.may_end = Event(), Event()
        self.may_end.set()
        self.asked = Event()

    def progress(self) -> Progress:
        return Progress("p", state=State.RUNNING)

    def wait(self, timeout: float | None = None) -> bool:
        return self.ended.wait(timeout)

    def stop(self, grace: float = 300.0) -> None:
        self.asked.set()
        self.may_end.wait(60)
        self.ended.set()


class IdleStarting:
    """Starts `Idle` runs, or raises what a test has put there."""

    runs: dict[str, Idle]
    error: Exception | None

    def __init__(self, *_: Any, **__: Any) -> None:
        return

    def start(self, row: Any, _lease: Any, _goes_elsewhere: Any = None) -> Idle:
        if type(self).error is not None:
            raise type(self).error
        runs = type(self).runs
        if row.name not in runs or runs[row.name].ended.is_set():
            runs[row.name] = Idle()  # what has ended does not run again
        return runs[row.name]

    def clean(self, _row: Any) -> None:
        return


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> type[IdleStarting]:
    """Jobs of this test do nothing; their runs by name."""
    kind: Any = type("Starting", (IdleStarting,), {"runs": {}, "error": None})
    monkeypatch.setattr(hosting, "Starting", kind)
    return kind


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "jobs.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def elsewhere(tmp_path: Path, store: Store) -> Iterator[Store]:
    """The same store, as another process has it."""
    opened = Store(tmp_path / "jobs.sqlite")
    yield opened
    opened.close()


def definition(name: str = "trades", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "source": {"kafka": {"topics": ["t"]}},
        "decode": {"json": {"schema": "n int"}},
        "sink": {"memory": {"table": "t"}},
        **more,
    }


def put(
    store: Store, name: str = "trades", desired: Desired = Desired.STOPPED, **more: Any
) -> None:
    store.put(name, JobSpec(definition(name, **more), OPTIONS, "17"), desired)
