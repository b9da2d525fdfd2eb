"""Taking messages from librdkafka: each wait can be ended from another thread, and loses nothing."""

from __future__ import annotations

import gc
import threading
import time
from math import inf

from confluent_kafka import KafkaError, KafkaException, Message

from penstock.errors import ConfigError, PenstockError, WakeupError
from penstock.kafka.consuming.buffer import Buffer, partition_of
from penstock.kafka.consuming.consumer_client import ConsumerClient
from penstock.kafka.kafka_errors import translate

# A wait is cut into pieces of this many seconds: a wakeup takes that long at most.
_SLICE = 0.1
_FEW = 100
# librdkafka's binding takes no more at once.
_LARGEST = 1_000_000
# librdkafka recovers from these by itself; the records come when the broker is back.
_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})


class Poller:
    """Fills the buffer of a consumer from librdkafka, or from the consumer's queues once it has any."""

    def __init__(self, client: ConsumerClient, buffer: Buffer) -> None:
        self._client = client
        self._handle = client.handle
        self._buffer = buffer
        self._woken = threading.Event()
        self._heard = time.monotonic()
        self._problem: PenstockError | None = None

    def fetch(self, max_records: int, deadline: float) -> list[Message]:
        """Return up to `max_records` messages: that many, or those that came before the deadline."""
        self.raise_if_woken()
        self._buffer.store_delivered()
        while (lacking := max_records - len(self._buffer.messages)) > 0:
            left = deadline - time.monotonic()
            self.gather(lacking, min(max(left, 0), _SLICE))
            if time.monotonic() >= deadline:
                break
        return self._buffer.deliver(max_records)

    def gather(self, max_records: int, wait: float) -> int:
        """Take messages into the buffer once; return how many came."""
        router = self._buffer.router
        came = (self.take if router is None else router.take)(max_records, wait)
        self._buffer.messages += came
        return len(came)

    def take(self, max_records: int, wait: float) -> list[Message]:
        """Call librdkafka once, for at most a slice of time, and handle its events."""
        self.raise_if_woken()
        self._raise_problem()
        self._client.bounded.require_free("reading records")
        messages = self._consume(max_records, wait)
        if not messages:
            self._raise_problem()
            self._handle.raise_refusal("reading records")
            return messages
        self._heard = time.monotonic()
        if self._buffer.ended or any(map(Message.error, messages)):
            messages = [message for message in messages if self._is_record(message)]
            if not messages:
                self._raise_problem()
        if messages:
            # Whatever was wrong with the connection, it works.
            self._handle.seen.clear()
        return messages

    def wakeup(self) -> None:
        """End the wait of another thread, or the next wait."""
        self._woken.set()

    def raise_if_woken(self) -> None:
        """Raise once when another thread called `wakeup`."""
        if self._woken.is_set():
            self._woken.clear()
            raise WakeupError("another thread called wakeup(): this poll ends here")

    def raise_if_unreachable(self, patience: float = 10.0) -> None:
        """Raise when the brokers have been unreachable, and silent for `patience` seconds."""
        seen, brokers = self._handle.seen, self._handle.brokers
        if seen and time.monotonic() - self._heard >= patience:
            raise translate(seen[-1], "reading records", brokers, seen)

    def _consume(self, max_records: int, wait: float) -> list[Message]:
        """Let librdkafka make its messages without garbage collection.

        Each is an object that the collector counts: a batch of thousands makes it run again and again,
        over objects that are all in use, and that takes longer than making them.
        """
        collects = max_records > _FEW and gc.isenabled()
        if collects:
            gc.disable()
        try:
            messages: list[Message] = self._client.raw.consume(min(max_records, _LARGEST), wait)
        except KafkaException as problem:
            raise self._handle.translate(problem.args[0], "reading records") from problem
        finally:
            if collects:
                gc.enable()
        return messages

    def _is_record(self, message: Message) -> bool:
        error, where = message.error(), partition_of(message)
        if error is None:
            self._buffer.ended.discard(where)
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._buffer.ended.add(where)
        elif not error.retriable() and error.code() not in _PASSING:
            # Records that came with it must not be lost: it is raised when they are in the buffer.
            self._problem = self._handle.translate(error, "reading records")
        return False

    def _raise_problem(self) -> None:
        self._handle.callbacks.raise_kept()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem


def at_least_one(max_records: int) -> int:
    """Return the size of a batch.

    >>> at_least_one(0)
    Traceback (most recent call last):
    penstock.errors.ConfigError: a batch of 0 records is not allowed; allowed: 1 or more
    """
    if max_records < 1:
        raise ConfigError(f"a batch of {max_records} records is not allowed; allowed: 1 or more")
    return max_records


def deadline_of(timeout: float) -> float:
    """Return when a wait that begins now ends; a negative time-out is forever.

    >>> deadline_of(-1)
    inf
    """
    return inf if timeout < 0 else time.monotonic() + timeout
