"""Reads `<flow>.replies` for the process that has the connections, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.errors import PenstockError, WakeupError
from penstock.flows.listener.reply import Reply, reply_in
from penstock.imports.positions import ensure_topic
from penstock.kafka import Admin, Consumer
from penstock.record import Record

log = event_logger(__name__)
Deliver = Callable[[list[tuple[str, Reply]]], None]
# A result is of use for as long as a request waits for it.
_KEPT_MS = 3_600_000
_AT_ONCE = 500
_POLL = 1.0
_PAUSE = 1.0


class ReplyReader:
    """Passes on what is written to the topic from its start on.

    Every process that listens for a flow reads all its results, and knows the ids of its own requests.
    """

    def __init__(self, connection: Connection, topic: str, deliver: Deliver) -> None:
        self._connection = connection
        self._topic = topic
        self._deliver = deliver
        self._ended = Event()
        self._consumer: Consumer | None = None
        self._thread = Thread(target=self._run, name=f"{topic}-reader", daemon=True)

    def start(self) -> None:
        """Create the topic where it is missing, and read from its end on."""
        with Admin(self._connection) as admin:
            ensure_topic(admin, self._topic, 1, {"retention.ms": _KEPT_MS})
            ends = admin.latest(admin.partitions([self._topic]))
        # Results that were removed before they were read are of no use to anyone.
        self._consumer = Consumer(self._connection, auto_offset_reset="earliest")
        self._consumer.assign(ends)
        self._thread.start()

    def close(self) -> None:
        """Read nothing more."""
        self._ended.set()
        if self._consumer is None:
            return
        self._consumer.wakeup()
        if self._thread.is_alive():
            self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._pass_on()
            except WakeupError:
                return
            except PenstockError as error:
                log.warning("replies_not_read", topic=self._topic, reason=str(error))
                self._ended.wait(_PAUSE)

    def _pass_on(self) -> None:
        """Wait for a result, and pass it on with those that are there with it."""
        consumer = self._consumer
        assert consumer is not None  # noqa: S101 - it is made before the thread begins
        first = consumer.poll(_POLL)
        if first is None:
            return
        found = [first, *consumer.poll_batch(_AT_ONCE, 0)]
        replies = [(_id(each), reply_in(each.value, each.headers)) for each in found]
        self._deliver([(id, reply) for id, reply in replies if id and reply is not None])


def _id(record: Record) -> str:
    return bytes(record.key or b"").decode("ascii", "replace")
