"""Transactions of a producer: all of its records and offsets become visible together, or none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from penstock.errors import ConfigError
from penstock.kafka.handle import Handle, Partition
from penstock.retry import retry

_PAUSE = 0.05
# A topic to ask about, and how long a broker may take to answer, in seconds.
_KNOWN_TO_ALL, _TO_CONNECT = "__transaction_state", 2.0
# How many answers are waited for: the second one is of a broker.
_ANSWERS = 4


class Transactions:
    """Begin, commit and abort, each tried again while librdkafka says that this may help."""

    def __init__(self, client: Any, handle: Handle) -> None:
        self._client = client
        self._handle = handle
        self._ready = False

    def init(self, timeout: float) -> None:
        """Fence every earlier producer with the same id, and abort what it left open; once."""
        if self._ready:
            return
        with suppress(KafkaException):
            self._wait_for_a_broker(min(timeout, _TO_CONNECT))
        self._try("starting transactions", timeout, self._client.init_transactions)
        self._ready = True

    def _wait_for_a_broker(self, timeout: float) -> None:
        """Wait for a connection that stays.

        The client asks for the coordinator at once, and again after half a second if no broker is
        connected then. Waiting first takes some milliseconds. The answer may come over the connection to
        the address of the settings, which is closed when the brokers are known: it has no id.
        """
        deadline = time.monotonic() + timeout
        for _ in range(_ANSWERS):
            left = max(0.01, deadline - time.monotonic())
            if self._client.list_topics(_KNOWN_TO_ALL, timeout=left).orig_broker_id >= 0:
                return

    def begin(self, timeout: float) -> None:
        """Begin. The first time this fences every earlier producer with the same id."""
        self.init(timeout)
        self._try(
            "beginning a transaction", timeout, lambda _left: self._client.begin_transaction()
        )

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any, timeout: float) -> None:
        """Make a consumer's offsets part of the transaction."""
        wanted = [TopicPartition(*where, offset) for where, offset in offsets.items()]
        if wanted:
            self.send_places(wanted, group, timeout)

    def send_places(self, wanted: list[TopicPartition], group: Any, timeout: float) -> None:
        """Make offsets part of the transaction as they are, with their metadata."""
        self._try(
            "adding offsets to a transaction",
            timeout,
            lambda left: self._client.send_offsets_to_transaction(wanted, group, left),
        )

    def commit(self, timeout: float) -> None:
        """Deliver what waits, and commit."""
        self._try("committing a transaction", timeout, self._client.commit_transaction)

    def abort(self, timeout: float) -> None:
        """Forget everything since `begin`."""
        self._try("aborting a transaction", timeout, self._client.abort_transaction)

    def _try(self, doing: str, timeout: float, call: Callable[[float], Any]) -> None:
        name = self._handle.get("transactional.id")
        if name is None:
            raise ConfigError(
                "a transaction needs a producer with a name of its own: "
                "give Producer(..., transactional_id=NAME)"
            )
        deadline = time.monotonic() + timeout

        def pause(error: Exception) -> float | None:
            again = isinstance(error, KafkaException) and error.args[0].retriable()
            return _PAUSE if again else None

        with self._handle.translated(f"{doing} of {name!r}"):
            retry(lambda: call(max(0.1, deadline - time.monotonic())), pause, within=timeout)
