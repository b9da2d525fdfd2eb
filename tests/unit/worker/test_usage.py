"""What a worker measures of itself, and that a Java process that does not answer delays nothing."""

from __future__ import annotations

from threading import Event

import psutil
import pytest

from penstock.engine import java_heap
from penstock.engine.java_heap import HeapUsage, JavaHeap
from penstock.testing import eventually
from penstock.worker.usage import UsageMeter


def test_processor_time_only_increases_and_memory_is_that_of_the_process() -> None:
    meter = UsageMeter()
    first = meter.measure(queries=3)
    sum(n * n for n in range(2_000_000))
    second = meter.measure(queries=0)

    own = psutil.Process().memory_info().rss
    assert (first.queries, second.queries) == (3, 0)
    assert second.cpu_seconds > first.cpu_seconds > 0
    assert first.memory > own / 2


def test_the_heap_is_asked_for_once_at_a_time_and_never_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    answer = Event()

    def slow() -> HeapUsage:
        asked.append(1)
        answer.wait(60)
        return HeapUsage(1, 2)

    monkeypatch.setattr(java_heap, "heap_usage", slow)
    heap = JavaHeap()
    for _ in range(3):
        heap.ask()
        assert heap.latest() is None
    eventually(lambda: asked == [1])
    answer.set()
    eventually(lambda: heap.latest() == HeapUsage(1, 2))
    monkeypatch.setattr(java_heap, "heap_usage", lambda: None)
    heap.ask()
    eventually(lambda: heap.latest() is None)


def test_no_java_has_no_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_heap, "java_view", lambda: None)
    assert java_heap.heap_usage() is None

    class Broken:
        def __getattr__(self, name: str) -> object:
            raise ConnectionRefusedError(name)

    monkeypatch.setattr(java_heap, "java_view", Broken)
    assert java_heap.heap_usage() is None
