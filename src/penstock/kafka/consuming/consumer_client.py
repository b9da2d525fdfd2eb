"""librdkafka's consumer as the parts of `Consumer` share it: its settings, errors, calls that end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, TopicPartition

from penstock.config import ConnectionLike, find_connection
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.bounded import BoundedCalls
from penstock.kafka.handle import Closed, Handle, OnError
from penstock.kafka.kafka_errors import translate
from penstock.kafka.offsets import NO_GROUP

T = TypeVar("T")
OnCommitted = Callable[["PenstockError | None", list[TopicPartition]], None]

TIMEOUT = 10.0
"""Seconds for a call that the caller gave no time-out for."""
_DEFAULTS = {
    "enable.auto.commit": False,
    # A loop over batches starves on librdkafka's own figures: 195 000 records/s against 1.1 million.
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 1_000_000,
    # Heartbeats wait behind a request that is not answered: it is given up well before the session ends.
    "socket.timeout.ms": 15_000,
}


class ConsumerClient:
    """One consumer of librdkafka. `raw` is the binding's object, until `close` replaces it."""

    def __init__(
        self,
        connection: ConnectionLike,
        group: str | None,
        settings: dict[str, Any],
        *,
        on_error: OnError,
        on_committed: OnCommitted,
        reads_ahead: bool,
    ) -> None:
        self.connection = find_connection(connection)
        named = [settings.pop(name, None) for name in ("group_id", "group.id")]
        self.group: str | None = group or named[0] or named[1] or self.connection.group_id
        self.bounded = BoundedCalls()
        self._on_committed = on_committed
        always: dict[str, Any] = {"enable.partition.eof": True, "group.id": self.group}
        if self.group is None:
            always |= {"group.id": NO_GROUP, "enable.auto.commit": False}
        self.handle = Handle(
            self.connection,
            "consumer",
            _DEFAULTS,
            on_error,
            on_commit=self._committed,
            **settings | always,
        )
        self.callbacks = self.handle.callbacks
        self.translated = self.handle.translated
        self.stores_offsets = bool(self.handle.get("enable.auto.offset.store", True))
        commits = bool(self.handle.get("enable.auto.commit"))
        # librdkafka would store what it gave to us; what counts is what we gave to the caller.
        self.tracks_delivery = self.stores_offsets and (reads_ahead or commits)
        if self.tracks_delivery:
            self.handle.put("enable.auto.offset.store", False)
        with self.translated("making a consumer"):
            self.raw: Any = Client(self.handle.settings())

    def call(self, doing: str, call: Callable[[Any], T], seconds: float = TIMEOUT) -> T:
        """Call librdkafka with a limit in seconds; raise its errors as ours."""
        with self.translated(doing):
            return self.bounded(doing, seconds, lambda: call(self.raw))

    def require_group(self, what: str) -> None:
        """Raise where this consumer has no group to store something under."""
        if self.group is None:
            raise ConfigError(f"{what} need a consumer group: give Consumer(..., group=NAME)")

    def close(self) -> None:
        """Leave the group at once and close the connections."""
        # The callbacks of a revocation may still use the client.
        self.bounded.close(self.raw.close)
        self.raw = Closed("consumer")

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        doing = f"committing for group {self.group!r}"
        problem = None
        if error is not None:
            problem = translate(error, doing, self.handle.brokers, self.handle.seen)
        self._on_committed(problem, partitions)
