"""How an administrator's question is put to the cluster: one time-out, and errors that are ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from penstock.config import ConnectionLike, find_connection
from penstock.errors import BrokerUnavailableError, ConfigError, PenstockError
from penstock.kafka.admin.coordinator import Coordinator
from penstock.kafka.admin.pinning import pin, unpin
from penstock.kafka.bounded import MARGIN, BoundedCalls, settled
from penstock.kafka.handle import Handle
from penstock.kafka.kafka_errors import MOVING, code_of, is_refusal
from penstock.kafka.offsets import GroupOffsets, PartitionOffsets
from penstock.retry import wait_for

_PAUSE = 0.05


class AdminCalls:
    """librdkafka's admin client, asked with a time-out; whatever fails is a PenstockError."""

    def __init__(self, connection: ConnectionLike, timeout: float, **overrides: Any) -> None:
        self.connection = find_connection(connection)
        self.timeout = timeout
        self._overrides = overrides
        self._handle = Handle(connection, "admin", **overrides)
        with self._handle.translated("making an admin"):
            self._client: Any = AdminClient(self._handle.settings())
        self.coordinator = Coordinator(self.connection, timeout)
        self._offsets: PartitionOffsets | None = None
        self._making = Lock()

    @property
    def client(self) -> Any:
        """Return the client, whose methods `one` and `each` call."""
        if self._client is None:
            raise ConfigError("this Admin is closed; create another one for further requests")
        return self._client

    @property
    def offsets(self) -> PartitionOffsets:
        """Return the client that reads the offsets of partitions."""
        # It blocks until its timeout and cannot be interrupted; describe_cluster can.
        if self._offsets is None:
            self.one("reading offsets", self.client.describe_cluster)
        with self._making:
            if self._offsets is None:
                self._offsets = PartitionOffsets(self.connection, self.timeout, **self._overrides)
            return self._offsets

    def group(self, name: str) -> GroupOffsets:
        """Return a client that reads and commits the offsets of a group; the caller closes it."""
        return GroupOffsets(self.connection, name, self.timeout, **self._overrides)

    def close(self) -> None:
        """Close the connections."""
        unpin(self._client)
        self._client = None
        self.coordinator.close()
        if self._offsets is not None:
            self._offsets.close()

    def one(self, doing: str, call: Callable[..., Any], *args: Any) -> Any:
        """Send a request that has one reply."""
        with self._asking(doing):
            return self._wait(self._sent(call, *args))

    def whole(self, doing: str, call: Callable[..., Any]) -> Any:
        """Ask every broker; the reply counts only if none of them failed."""

        def ask() -> Any:
            answer = self._wait(self._sent(call))
            if answer.errors:
                self._give_up_early()
            return answer

        with self._asking(doing):
            answer = wait_for(
                ask, lambda given: not given.errors, within=self.timeout, every=_PAUSE
            )
            if answer.errors:
                raise KafkaException(answer.errors[0])
            return answer

    def each(
        self, doing: str, call: Callable[..., Any], *args: Any, quiet: int | None = None
    ) -> dict[Any, Any]:
        """Return all replies to one request, without those that are an error of code `quiet`."""
        with self._asking(doing):
            return settled(lambda: self._answers(self._sent(call, *args), quiet), self.timeout)

    def outcomes(self, doing: str, call: Callable[..., Any], *args: Any) -> dict[Any, Any]:
        """Return all replies to one request; a reply may be a PenstockError."""

        def ask() -> dict[Any, Any]:
            with self._asking(doing):
                futures = self._sent(call, *args)
            return {what: self._outcome(doing, future) for what, future in futures.items()}

        def none_moves(outcomes: dict[Any, Any]) -> bool:
            failed = [each for each in outcomes.values() if isinstance(each, PenstockError)]
            return not any(code_of(each) in MOVING for each in failed)

        return wait_for(ask, none_moves, within=self.timeout, every=_PAUSE)

    def metadata(self, doing: str) -> Any:
        """Return the brokers, topics and partitions of the whole cluster."""
        # list_topics blocks until its timeout and cannot be interrupted; describe_cluster can.
        self.one(doing, self.client.describe_cluster)
        with self._asking(doing):
            ask = partial(self.client.list_topics, timeout=self.timeout)
            return BoundedCalls()(doing, self.timeout + MARGIN, ask)

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds on the cluster; raise when it does not within the time-out."""
        if not self.settles(holds, self.timeout):
            raise BrokerUnavailableError(
                f"waited {self.timeout:g} s until {what} on {self._handle.brokers}; "
                "look at the broker's log, or give a longer time-out"
            )

    def settles(self, holds: Callable[[], bool], within: float) -> bool:
        """Wait until something holds; False when it did not in the given seconds."""
        return wait_for(holds, within=within, every=_PAUSE)

    def _sent(self, call: Callable[..., Any], *args: Any) -> Any:
        """Send a request; return its future, or those of its parts."""
        client = self.client
        sent = call(*args, request_timeout=self.timeout)
        pin(client, sent.values() if isinstance(sent, Mapping) else [sent])
        return sent

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        # What the connection reported before this call says nothing about this call.
        self._handle.seen.clear()
        try:
            yield
        except KafkaException as problem:
            self.client.poll(0)
            raise self._handle.translate(problem.args[0], doing) from problem

    def _answers(self, futures: Mapping[Any, Future[Any]], quiet: int | None) -> dict[Any, Any]:
        answers = {}
        for what, future in futures.items():
            try:
                answers[what] = self._wait(future)
            except KafkaException as problem:
                if problem.args[0].code() != quiet:
                    raise
        return answers

    def _outcome(self, doing: str, future: Future[Any]) -> Any:
        try:
            return self._wait(future)
        except KafkaException as problem:
            error = self._handle.translate(problem.args[0], doing)
            error.__cause__ = problem
            return error

    def _wait(self, future: Future[Any]) -> Any:
        deadline = time.monotonic() + self.timeout + MARGIN
        while True:
            try:
                return future.result(timeout=0.1)
            except NotYet:
                self._give_up_early()
                if time.monotonic() > deadline:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None

    def _give_up_early(self) -> None:
        # A refused password does not get better by waiting for the time-out.
        self.client.poll(0)
        for error in list(self._handle.seen):
            if is_refusal(error):
                raise KafkaException(error)
