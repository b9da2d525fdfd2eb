"""Spark's query, which a batch may need before Spark has returned it."""

from __future__ import annotations

from threading import Thread
from typing import Any

from penstock.engine.loop import LaunchedQuery


def test_who_asks_before_the_query_is_launched_waits_for_it() -> None:
    launched = LaunchedQuery()
    assert launched.current is None
    answers: list[Any] = []
    asking = Thread(target=lambda: answers.append(launched()))
    asking.start()
    query: Any = object()
    launched.set(query)
    asking.join(30)
    assert answers == [query]
    assert launched.current is query
