"""What every librdkafka client of ours shares: silence on the terminal, a memory for errors, an end."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import local
from typing import Any, Literal

from confluent_kafka import KafkaError, KafkaException

from penstock.config import ConnectionLike, find_connection
from penstock.errors import PenstockError, TerminalError
from penstock.kafka.kafka_errors import describe_event, refusal, translate

Role = Literal["producer", "consumer", "admin"]
Partition = tuple[str, int]
OnError = Callable[[str, str, str], None]
"""Called with every error in the background: level ("ERROR" or "WARNING"), name, message."""

logger = logging.getLogger("penstock.librdkafka")
# Longer than librdkafka waits between two attempts to connect.
_LATELY = 30.0
_here = local()


def is_in_callback() -> bool:
    """Return whether this thread runs a callback: calls of other threads wait until it returns."""
    return getattr(_here, "inside", False)


class Callbacks:
    """Runs callbacks of the user's own, and keeps what the first of them raised until it is asked for.

    They run inside of librdkafka. Its binding drops the messages that it has in hand when one raises, and
    raises out of whatever call happens to serve it; `raise_kept` raises where nothing is lost by it.

    >>> callbacks = Callbacks()
    >>> callbacks.run(int, "no number")
    >>> callbacks.raise_kept()
    Traceback (most recent call last):
    ValueError: invalid literal for int() with base 10: 'no number'
    """

    def __init__(self) -> None:
        self._raised: BaseException | None = None

    def run(self, callback: Callable[..., Any], *args: Any) -> Any:
        """Call; return None if the callback raised."""
        outer = is_in_callback()
        _here.inside = True
        try:
            return callback(*args)
        except BaseException as problem:
            # Ctrl-C too: it is raised a moment later, by `raise_kept`.
            self._raised = self._raised or problem
            return None
        finally:
            _here.inside = outer

    def raise_kept(self) -> None:
        """Raise, once, what a callback raised."""
        problem, self._raised = self._raised, None
        if problem is not None:
            raise problem


class QuietLogger:
    """Takes librdkafka's log lines, which would go to the terminal, into our log at debug level.

    What matters in them reaches the user as an error; the lines themselves are for bug reports.
    """

    def log(self, _level: int, message: str, *args: object) -> None:
        """Log a line of librdkafka, which has its own idea of the level."""
        logger.debug(message, *args)


class Handle:
    """The settings of one client, and what its connection reported lately."""

    def __init__(
        self,
        connection: ConnectionLike,
        role: Role,
        defaults: Mapping[str, Any] | None = None,
        on_error: OnError | None = None,
        **overrides: Any,
    ) -> None:
        self.connection = find_connection(connection)
        self.brokers = self.connection.brokers
        self.seen: deque[KafkaError] = deque(maxlen=20)
        self.callbacks = Callbacks()
        self._on_error = on_error
        self._end: KafkaError | None = None
        self._heard_at = -_LATELY
        self._settings = {**(defaults or {}), **self.connection.librdkafka(role, **overrides)}

    def settings(self) -> dict[str, Any]:
        """Return what a confluent_kafka client is made with."""
        return {**self._settings, "error_cb": self._heard, "logger": QuietLogger()}

    def put(self, key: str, value: Any) -> None:
        """Change a setting, before the client is made."""
        self._settings[key] = value

    def get(self, key: str, default: Any = None) -> Any:
        """Return one setting, under its librdkafka name."""
        return self._settings.get(key, default)

    @contextmanager
    def translated(self, doing: str) -> Iterator[None]:
        """Run a block so that librdkafka's errors come out as ours, named after `doing`."""
        try:
            yield
        except KafkaException as problem:
            raise self.translate(problem.args[0], doing) from problem

    def translate(self, error: KafkaError, doing: str) -> PenstockError:
        """Return one of librdkafka's errors as ours, named after `doing`."""
        if error.code() == KafkaError._FATAL and self._end is not None:
            # Why a client ended is reported once; from then on every call merely says that it did.
            error = self._end
        elif error.fatal() and self._end is None:
            self._end = error
            # The binding raises such an error and does not call back.
            self._heard(error)
        return translate(error, doing, self.brokers, self.seen)

    def raise_refusal(self, doing: str) -> None:
        """Raise when the brokers refused this user: waiting does not make a password right."""
        # A refusal is reported again and again; after a while without one the user was let in.
        lately = time.monotonic() - self._heard_at < _LATELY
        if lately and (refused := refusal(doing, self.brokers, self.seen)):
            raise refused

    def _heard(self, error: KafkaError) -> None:
        self.seen.append(error)
        self._heard_at = time.monotonic()
        if self._on_error is not None:
            self.callbacks.run(self._on_error, *describe_event(error))


class Closed:
    """What replaces a closed client: raises, whatever is called; closing it again is allowed.

    >>> Closed("consumer").poll(1)
    Traceback (most recent call last):
    penstock.errors.TerminalError: this consumer is closed and does no more; make a new one
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def close(self) -> None:
        """Do nothing: nothing is left to close."""

    def __len__(self) -> int:
        return 0

    def refuse(self, *_args: object) -> None:
        """Raise."""
        raise TerminalError(f"this {self._what} is closed and does no more; make a new one")

    def __getattr__(self, _name: str) -> Any:
        return self.refuse()
