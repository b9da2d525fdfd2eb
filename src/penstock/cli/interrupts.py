"""Ctrl-C: the first one stops cleanly, the second one ends the process and its children immediately."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event
from typing import NoReturn

import psutil

from penstock.cli.output import messages, say

INTERRUPTED = 130
# Seconds that children get to exit on their own: Spark removes its temporary files.
_GRACE = 1.0


@contextmanager
def interruptible() -> Iterator[Event]:
    """Set the event at the first Ctrl-C or SIGTERM; end the process at the second one."""
    asked = Event()

    def ask(_number: int, _frame: object) -> None:
        if asked.is_set():
            end_at_once()
        asked.set()
        _say("stopping after the current batch; press Ctrl-C again to exit immediately")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_at_once() -> NoReturn:
    """End the process and all its children, without waiting for a batch."""
    _say("exited immediately: the next run repeats the current batch")
    # Threads that lose their Java process now would report it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    children = psutil.Process().children(recursive=True)
    for child in children:
        with suppress(psutil.Error):
            child.terminate()
    for child in psutil.wait_procs(children, timeout=_GRACE)[1]:
        with suppress(psutil.Error):
            child.kill()
    os._exit(INTERRUPTED)


def _say(message: str) -> None:
    """Print from a signal handler: it may have interrupted another print, or the terminal may be gone."""
    with suppress(RuntimeError, OSError, ValueError):
        messages().show_cursor()
        say(message)
        sys.stdout.flush()
