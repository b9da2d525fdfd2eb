"""Starts Java again in the background when it has died, while other workers run the deployments."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread

from penstock.config.logs import event_logger
from penstock.engine import spark_session
from penstock.engine.session import session_is_lost

log = event_logger(__name__)


class JavaRestart:
    """Starts Spark's session of this process again; `offer` is called with whether there is one.

    A process without a session so far is ready: the first run starts it.
    """

    def __init__(self, offer: Callable[[bool], object]) -> None:
        self._offer = offer
        self._thread: Thread | None = None
        self._is_offered = True

    def is_ready(self) -> bool:
        """Return whether a run can start at once; begin to start Java where it has died."""
        is_lost = session_is_lost()
        if is_lost and (self._thread is None or not self._thread.is_alive()):
            self._thread = Thread(target=_start, name="java-restart", daemon=True)
            self._thread.start()
        if self._is_offered == is_lost:
            self._offer(not is_lost)
            self._is_offered = not is_lost
        return not is_lost


def _start() -> None:
    began = time.monotonic()
    try:
        spark_session()
    except Exception as error:  # it is tried again
        log.warning("spark_not_started", reason=str(error))
        time.sleep(1.0)
    else:
        log.info("spark_started", seconds=round(time.monotonic() - began, 2))
