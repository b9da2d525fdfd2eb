"""Batches that wait for a core run in the order in which they began; their pools are removed."""

from __future__ import annotations

from typing import Any

from penstock.engine import spark_session
from penstock.engine.turns import POOL, turn


def pools(context: Any) -> set[str]:
    found = context._jsc.sc().taskScheduler().rootPool().schedulableQueue().iterator()
    names = set()
    while found.hasNext():
        names.add(found.next().name())
    return names


def test_a_later_turn_comes_after_an_earlier_one_and_pools_are_removed() -> None:
    context = spark_session().sparkContext
    names = []
    for _ in range(3):
        with turn(context):
            names.append(context.getLocalProperty(POOL))
            assert context.parallelize([1, 2], 2).sum() == 3
            assert names[-1] in pools(context)
        assert names[-1] not in pools(context)
    assert names == sorted(names)
    assert context.getLocalProperty(POOL) is None
    assert not {name for name in pools(context) if name.startswith("turn-")}
