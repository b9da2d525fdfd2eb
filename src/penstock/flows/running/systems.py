"""What a flow needs of other systems, as interfaces: tests implement them with canned replies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from penstock.flows.error_codes import Fault

if TYPE_CHECKING:
    from penstock.flows.publish.operation import Operation


class PublishRequest(Struct, frozen=True):
    """One message to be published: what the operation's expressions gave for it."""

    fields: Mapping[str, Any]


Receipt = Mapping[str, Any]
"""What a publish operation adds to the attributes: for Kafka topic, partition and offset."""


class Publisher(Protocol):
    """Publishes messages, and waits until they are confirmed."""

    def publish(
        self, step: str, operation: Operation, requests: Sequence[PublishRequest]
    ) -> Sequence[Receipt | Fault]:
        """Return for each request its receipt, or why it failed; in their order."""


@dataclass(frozen=True)
class HttpRequest:
    """A request of a step."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


@dataclass(frozen=True)
class HttpReply:
    """The reply of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Requests(Protocol):
    """Sends requests over HTTP."""

    def send(self, step: str, options: Any, request: HttpRequest) -> HttpReply:
        """Return the reply, whatever its status; raise Fault where there is none."""


class Queries(Protocol):
    """Runs queries on databases."""

    def query(
        self, step: str, options: Any, sql: str, parameters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the rows; parameters are bound, never part of the text."""


@dataclass
class Systems:
    """Everything outside of the flow."""

    publisher: Publisher
    requests: Requests
    queries: Queries
    wait: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
