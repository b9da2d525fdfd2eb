"""Records that flow into a topic while pipelines are killed: most are good, some do not decode."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread

from penstock import Admin, Connection, Producer
from penstock.testing import eventually

PARTITIONS = 3
# One in this many records is not JSON.
BAD_EVERY = 499
_BREATH = 0.1


def is_bad(n: int) -> bool:
    return n % BAD_EVERY == 0


def value(n: int) -> bytes:
    return b"bad %d" % n if is_bad(n) else b'{"n": %d}' % n


class Load:
    """A producer in a thread of its own; `sent` is how many records it has given to Kafka."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        burst: int = 20,
        values: Callable[[int], bytes] = value,
    ) -> None:
        self.connection = connection
        self.topic = topic
        self.burst = burst
        self._value = values
        self.sent = 0
        self._stop, self._pause = Event(), Event()
        self._thread = Thread(target=self._send, daemon=True)

    def __enter__(self) -> Load:
        with Admin(self.connection) as admin:
            admin.create_topic(self.topic, PARTITIONS)
        self._thread.start()
        eventually(lambda: self.sent > 0)
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Stop, when all that was sent is acknowledged."""
        self._stop.set()
        self._thread.join()

    def _send(self) -> None:
        sure = {"acks": "all", "enable.idempotence": True}
        with Producer(self.connection, **sure) as producer:
            while not self._stop.is_set():
                for n in range(self.sent, self.sent + self.burst):
                    producer.produce(self.topic, None, self._value(n), partition=n % PARTITIONS)
                self.sent += self.burst
                time.sleep(_BREATH)  # the rate of the load, not a wait
