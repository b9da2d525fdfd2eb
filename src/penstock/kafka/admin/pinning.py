"""Keeps an admin client alive while replies to its requests may still arrive.

librdkafka aborts the process when a client is freed in the client's own thread. Replies arrive in that
thread and run Python code there; without another reference, as after a request that timed out, Python's
garbage collector may free the client in it. So a request pins its client, and another thread unpins it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

# Longer than the client's thread takes after a reply until it has left Python.
_AFTERWARDS = 1.0

_pinned: dict[Future[Any], Any] = {}
_answered: SimpleQueue[tuple[float, Future[Any]]] = SimpleQueue()
_starting = Lock()
_unpinning: Thread | None = None


def pin(client: Any, futures: Iterable[Future[Any]]) -> None:
    """Keep the client until a moment after each of these requests has its reply."""
    _start_unpinning()
    for future in futures:
        _pinned[future] = client
        future.add_done_callback(_note)


def unpin(client: Any) -> None:
    """Let go of the client where its requests have their replies: its owner frees it in this thread."""
    for future, pinned in list(_pinned.items()):
        if pinned is client and future.done():
            _pinned.pop(future, None)


def _note(future: Future[Any]) -> None:
    _answered.put((time.monotonic() + _AFTERWARDS, future))


def _start_unpinning() -> None:
    global _unpinning  # noqa: PLW0603 - one thread for all clients of the process
    with _starting:
        if _unpinning is None or not _unpinning.is_alive():  # a forked process has none
            _unpinning = Thread(target=_unpin_later, name="penstock-unpin", daemon=True)
            _unpinning.start()


def _unpin_later() -> None:
    while True:
        due, future = _answered.get()
        time.sleep(max(0.0, due - time.monotonic()))
        _pinned.pop(future, None)
        del future
