"""Calls into librdkafka that end: some of its calls take no time-out, and wait for a broker that hangs.

A commit, say, waits for as long as a broker holds its connection and does not answer. Such a call runs in
a thread of its own, and the caller waits for it for a limited time. One that met a moving leader or
coordinator is repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from confluent_kafka import KafkaException

from penstock.config.logs import event_logger
from penstock.errors import BrokerUnavailableError
from penstock.kafka.handle import is_in_callback
from penstock.kafka.kafka_errors import MOVING
from penstock.retry import retry

T = TypeVar("T")
log = event_logger(__name__)
_ENDING = 1.0
# Longer than a member that leaves waits for brokers that do not answer.
_CLOSING = 60.0
_PAUSE = 0.05
MARGIN = 5.0
"""What a call gets beyond the time-out that it was given itself, in seconds."""


class BoundedCalls:
    """The calls of one client of librdkafka, each with a limit in seconds.

    >>> BoundedCalls()("adding", 10, lambda: 1 + 1)
    2
    """

    def __init__(self) -> None:
        self._running: list[Thread] = []
        self._late: list[Thread] = []

    def __call__(self, doing: str, seconds: float, call: Callable[[], T]) -> T:
        """Return what the call returns, or raise what it raises; give up when the time is over."""
        if is_in_callback():
            return call()  # another thread would wait for the client, which waits for the callback
        outcome: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

        def run() -> None:
            try:
                outcome.put((call(), None))
            except BaseException as problem:  # raised where it is waited for
                outcome.put((None, problem))

        thread = Thread(target=run, name="librdkafka-call", daemon=True)
        self.require_free(doing)
        try:
            thread.start()
        except RuntimeError:
            return call()  # at the end of the process, when no thread starts any more
        self._running = [one for one in self._running if one.is_alive()] + [thread]
        try:
            answer, problem = outcome.get(timeout=seconds)
        except Empty:
            self._late = [one for one in self._late if one.is_alive()] + [thread]
            raise BrokerUnavailableError(
                f"{doing}: no answer within {seconds:g} s; the brokers hang or cannot be reached: look "
                "at them, then try again"
            ) from None
        if problem is not None:
            raise problem
        return answer  # type: ignore[return-value]

    def require_free(self, doing: str) -> None:
        """Raise while an earlier call hangs: calls of one client wait for each other."""
        if any(one.is_alive() for one in self._late):
            raise BrokerUnavailableError(f"{doing}: an earlier call still waits for the brokers")

    def close(self, client: Callable[[], object]) -> None:
        """Close the client, unless a call of it hangs: it is left to that call's thread then.

        librdkafka would free what the call uses. A call of another thread gets a moment to end. Closing
        takes a limited time too: with a rebalance on its way it may wait for itself, forever.
        """
        deadline = time.monotonic() + _ENDING
        for thread in self._running:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._running):
            log.warning("client_not_closed", reason="an earlier call still waits for the brokers")
            return
        try:
            self("closing", _CLOSING, client)
        except BrokerUnavailableError as error:
            log.warning("client_not_closed", reason=str(error))


def settled(
    ask: Callable[[], T],
    seconds: float,
    codes: Collection[int] = MOVING,
    pause: float = _PAUSE,
) -> T:
    """Ask, and ask again while what was asked moves, by one of these errors, and there is time."""

    def again(error: Exception) -> float | None:
        moves = isinstance(error, KafkaException) and error.args[0].code() in codes
        return pause if moves else None

    return retry(ask, again, within=seconds)
