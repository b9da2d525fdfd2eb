"""The table of the step `enrich`: read once, again when it is stale, used on where that fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import TransientError
from penstock.steps import enrich
from penstock.steps.enrich import EnrichedRows, EnrichStep


class Frame:
    """A table in Spark's memory."""

    def __init__(self) -> None:
        self.is_held = True

    def unpersist(self) -> None:
        self.is_held = False


class Tables(EnrichedRows):
    """Reads one table after the other; an error is raised."""

    def __init__(self, *found: Any) -> None:
        super().__init__(EnrichStep(table={"files": "t"}, by="id", reload="1m"))
        self.found = list(found)

    def _read(self, spark: Any) -> Any:
        next_one = self.found.pop(0)
        if isinstance(next_one, Exception):
            raise next_one
        return next_one


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(value=1000.0)
    monkeypatch.setattr(enrich.time, "monotonic", lambda: now.value)
    return now


SPARK: Any = None


def test_the_table_is_read_once_until_it_is_stale(clock: SimpleNamespace) -> None:
    first, second = Frame(), Frame()
    tables = Tables(first, second)
    assert not tables.is_stale()
    assert tables._table(SPARK) is first
    clock.value += 60
    assert tables._table(SPARK) is first
    clock.value += 1
    assert tables.is_stale()
    assert tables._table(SPARK) is second
    assert not first.is_held
    assert not tables.is_stale()


def test_a_table_that_cannot_be_read_again_is_used_on(clock: SimpleNamespace) -> None:
    first = Frame()
    tables = Tables(first, TransientError("away"))
    tables._table(SPARK)
    clock.value += 61
    assert tables._table(SPARK) is first
    assert first.is_held
    assert not tables.is_stale()  # the next try is a minute later


def test_a_table_that_cannot_be_read_the_first_time_is_an_error(clock: SimpleNamespace) -> None:
    with pytest.raises(TransientError):
        Tables(TransientError("away"))._table(SPARK)


def test_the_table_is_released_at_the_end(clock: SimpleNamespace) -> None:
    first, second = Frame(), Frame()
    tables = Tables(first, second)
    tables._table(SPARK)
    tables.close()
    assert not first.is_held
    assert tables._table(SPARK) is second
