"""How an administrator's question is put to the cluster: one time-out, and errors that are ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from threading import Lock
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.config import ConnectionLike, find_connection
from penstock.errors import BrokerUnavailableError, ConfigError, PenstockError
from penstock.kafka.admin.coordinator import Coordinator
from penstock.kafka.errors import MOVING, is_refusal, translate
from penstock.kafka.handle import Handle
from penstock.kafka.offsets import GroupOffsets, PartitionOffsets
from penstock.kafka.settling import settled

_PAUSE = 0.05


class Asker:
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
        """The client itself: its methods are what `one` and `each` call."""
        if self._client is None:
            raise ConfigError("this Admin is closed; make another one to ask further")
        return self._client

    @property
    def offsets(self) -> PartitionOffsets:
        """Reads the offsets of partitions."""
        # It blocks deaf until its time-out; the cluster's description does not.
        if self._offsets is None:
            self.one("reading offsets", self.client.describe_cluster)
        with self._making:
            if self._offsets is None:
                self._offsets = PartitionOffsets(self.connection, self.timeout, **self._overrides)
            return self._offsets

    def group(self, name: str) -> GroupOffsets:
        """Reads and commits the offsets of a group; to be closed by the one who asked for it."""
        return GroupOffsets(self.connection, name, self.timeout, **self._overrides)

    def close(self) -> None:
        """Let go of the connections."""
        self._client = None
        self.coordinator.close()
        if self._offsets is not None:
            self._offsets.close()

    def one(self, doing: str, call: Callable[..., Any], *args: Any) -> Any:
        """Ask a question that has one answer."""
        with self._asking(doing):
            return self._wait(call(*args, request_timeout=self.timeout))

    def whole(self, doing: str, call: Callable[..., Any]) -> Any:
        """Ask every broker; the answer counts only when each of them has given its part."""
        deadline = time.monotonic() + self.timeout
        with self._asking(doing):
            while True:
                answer = self._wait(call(request_timeout=self.timeout))
                if not answer.errors:
                    return answer
                if time.monotonic() > deadline:
                    raise KafkaException(answer.errors[0])
                self._give_up_early()
                time.sleep(_PAUSE)

    def each(
        self, doing: str, call: Callable[..., Any], *args: Any, quiet: int | None = None
    ) -> dict[Any, Any]:
        """Every answer of one question; an answer that is an error of code `quiet` is left out."""
        limit = self.timeout
        with self._asking(doing):
            return settled(lambda: self._answers(call(*args, request_timeout=limit), quiet), limit)

    def outcomes(self, doing: str, call: Callable[..., Any], *args: Any) -> dict[Any, Any]:
        """Every answer of one question, where an answer may also be a PenstockError."""
        deadline = time.monotonic() + self.timeout
        while True:
            with self._asking(doing):
                futures = call(*args, request_timeout=self.timeout)
            told = {what: self._outcome(doing, future) for what, future in futures.items()}
            if not any(map(_is_moving, told.values())) or time.monotonic() > deadline:
                return told
            time.sleep(_PAUSE)

    def metadata(self, doing: str) -> Any:
        """The brokers, topics and partitions of the whole cluster."""
        # list_topics blocks deaf until its time-out; the cluster's description does not.
        self.one(doing, self.client.describe_cluster)
        with self._asking(doing):
            return self.client.list_topics(timeout=self.timeout)

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds on the cluster; raise when it does not within the time-out."""
        if not self.settles(holds, self.timeout):
            raise BrokerUnavailableError(
                f"waited {self.timeout:g} s until {what} on {self._handle.brokers}; "
                "look at the broker's log, or give a longer time-out"
            )

    def settles(self, holds: Callable[[], bool], within: float) -> bool:
        """Wait until something holds; False when it did not in the given seconds."""
        deadline = time.monotonic() + within
        while not holds():
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        return True

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        # What the connection reported before this call says nothing about this call.
        self._handle.seen.clear()
        try:
            yield
        except KafkaException as problem:
            self.client.poll(0)
            raise self._translated(doing, problem) from problem

    def _translated(self, doing: str, problem: KafkaException) -> PenstockError:
        return translate(problem.args[0], doing, self._handle.brokers, self._handle.seen)

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
            error = self._translated(doing, problem)
            error.__cause__ = problem
            return error

    def _wait(self, future: Future[Any]) -> Any:
        while True:
            try:
                return future.result(timeout=0.1)
            except NotYet:
                self._give_up_early()

    def _give_up_early(self) -> None:
        # A refused password does not get better by waiting for the time-out.
        self.client.poll(0)
        for error in list(self._handle.seen):
            if is_refusal(error):
                raise KafkaException(error)


def _is_moving(outcome: Any) -> bool:
    return isinstance(outcome, PenstockError) and code_of(outcome) in MOVING


def code_of(error: PenstockError) -> int | None:
    """librdkafka's code behind an error of ours, for the few places that have more to say about it."""
    cause = error.__cause__
    return cause.args[0].code() if isinstance(cause, KafkaException) else None
