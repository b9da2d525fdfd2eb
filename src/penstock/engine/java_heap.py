"""How full the heap of Spark's Java process is: asked in a thread of its own, never waited for.

A Java process that is suspended answers no question and ends no connection. Only the asking thread waits
for it then, and there is one at most.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any

from penstock.config.logs import event_logger
from penstock.engine.session import java_view

log = event_logger(__name__)
_FRESH = 30.0


@dataclass(frozen=True)
class HeapUsage:
    """Bytes of a Java heap."""

    used: int
    largest: int


class JavaHeap:
    """The last known usage; `ask` requests a newer one and returns at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asking: Thread | None = None
        self._answer: tuple[HeapUsage | None, float] = None, 0.0

    def ask(self) -> None:
        """Request the usage, unless an earlier request is still without an answer."""
        with self._lock:
            if self._asking is not None and self._asking.is_alive():
                return
            self._asking = Thread(target=self._ask, name="java-heap", daemon=True)
            self._asking.start()

    def latest(self) -> HeapUsage | None:
        """Return the last answer; None if there is no Java process, or it has not answered for long."""
        answer, at = self._answer
        return answer if time.monotonic() - at < _FRESH else None

    def _ask(self) -> None:
        self._answer = heap_usage(), time.monotonic()


def heap_usage() -> HeapUsage | None:
    """Return the usage by asking Java; None if there is no Java process, or it dies meanwhile."""
    java: Any = java_view()
    if java is None:
        return None
    try:
        runtime = java.java.lang.Runtime.getRuntime()
        used = runtime.totalMemory() - runtime.freeMemory()
        return HeapUsage(int(used), int(runtime.maxMemory()))
    except Exception as error:  # py4j raises many kinds while a connection breaks
        log.debug("heap_unknown", reason=str(error))
        return None
