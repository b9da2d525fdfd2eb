"""A store of its own for each test, and jobs that end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Connection, Job, create_job
from penstock.jobs import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    held = Store(tmp_path / "jobs.sqlite")
    yield held
    held.close()


@pytest.fixture
def job(
    store: Store, connection: Connection, unique: str, tmp_path: Path
) -> Iterator[Callable[..., Job]]:
    """Makes jobs on the shared broker with a state of their own."""
    made: list[Job] = []

    def make(source: Any, table: Any, parser: Any = None, name: str = unique, **more: Any) -> Job:
        defaults = {"store": store, "state": str(tmp_path / "state")}
        if isinstance(source, (str, list)):
            defaults["connection"] = connection
        made.append(create_job(source, table, parser, name, **(defaults | more)))
        return made[-1]

    yield make
    for one in made:
        one.stop()
