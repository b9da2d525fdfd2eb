"""What a worker uses of its machine: memory and processor time of its processes, the heap of its Java."""

from __future__ import annotations

from contextlib import suppress

import psutil

from penstock.control.store.rows import WorkerUsage
from penstock.engine.java_heap import JavaHeap


class UsageMeter:
    """Measures this process and its children; the processor time only increases.

    The time of a process that ended between two measurements is counted up to the first of them.
    """

    def __init__(self) -> None:
        self._heap = JavaHeap()
        self._seen: dict[psutil.Process, float] = {}
        self._total = 0.0

    def measure(self, queries: int) -> WorkerUsage:
        """Return the usage now; it waits for no other process."""
        own = psutil.Process()
        memory, seen = 0, {}
        for process in [own, *own.children(recursive=True)]:
            before = seen[process] = self._seen.get(process, 0.0)
            with suppress(psutil.Error), process.oneshot():  # it may have ended
                memory += process.memory_info().rss
                times = process.cpu_times()
                seen[process] = max(before, times.user + times.system)
            self._total += seen[process] - before
        self._seen = seen
        heap = self._heap.latest()
        self._heap.ask()  # for the next time
        used, largest = (heap.used, heap.largest) if heap else (None, None)
        return WorkerUsage(memory, self._total, queries, used, largest)
