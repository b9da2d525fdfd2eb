"""Sends messages to a broker: many at a time, and returns when the broker has answered for each."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from proton import Delivery, Endpoint

from penstock.errors import ConfigError, PenstockError, TransientError
from penstock.sinks.jms.amqp_connection import refusal_of
from penstock.sinks.jms.jms_messages import Messages
from penstock.sinks.messages.outlet import Outlet, Refusal

if TYPE_CHECKING:
    from penstock.sinks.jms.jms_sink import JmsSink

# The most messages that are not answered, and the most bytes that wait for the socket.
_UNANSWERED, _UNSENT = 5_000, 4 * 2**20
# The last bytes of a connection come before its end.
_LOOKS = 3
# The most destinations that are open at a time.
_LINKS = 200


class JmsOutlet(Outlet):
    """A connection, and a link for each destination."""

    def __init__(self, sink: JmsSink) -> None:
        self._sink = sink
        self._messages = Messages(sink)
        self._connection = sink.broker().connect()
        self._links: OrderedDict[str, Any] = OrderedDict()
        # What the broker said of destinations that it does not have, or does not allow.
        self._refused: dict[str, str] = {}
        self._waiting: deque[tuple[int, str, Any]] = deque()
        self._tags = count()
        self._refusals: list[Refusal] = []

    def send(self, rows: pa.RecordBatch) -> Iterable[Refusal]:
        """Send rows, and wait until each is accepted or refused."""
        self._refusals = []
        for row, made in enumerate(self._messages.of(rows)):
            if isinstance(made, Refusal):
                self._refusals.append(made)
            else:
                self._send(row, *made)
        while self._waiting:
            self._wait_for_answers(len(self._waiting) - 1)
        return self._refusals

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def is_connected(self) -> bool:
        """Return whether the broker has not ended the connection since it was used."""
        try:
            for _ in range(_LOOKS):
                self._connection.wait_for_bytes(0.0, "sending")
        except PenstockError:
            return False
        return True

    def open_link(self) -> None:
        """Open the sink's own destination: what is wrong with it is raised."""
        self._link(self._sink.destination)

    def _send(self, row: int, destination: str, message: bytes) -> None:
        link = self._link(destination)
        if link is None:
            self._refuse(row, "DestinationError", self._refused[destination])
            return
        if 0 < link.remote_max_message_size < len(message):
            self._refuse(row, "TooLargeError", _too_large(len(message), link))
            return
        self._wait_for_room(link, destination)
        delivery = link.delivery(str(next(self._tags)))
        link.stream(message)
        link.advance()
        self._waiting.append((row, destination, delivery))
        if self._connection.session.outgoing_bytes > _UNSENT:
            what = f"sending to {destination!r}"
            self._connection.wait(lambda: self._connection.session.outgoing_bytes <= _UNSENT, what)

    def _wait_for_room(self, link: Any, destination: str) -> None:
        """Wait until the broker takes another message."""
        if len(self._waiting) >= _UNANSWERED:
            self._wait_for_answers(_UNANSWERED // 2)
        deadline = time.monotonic() + self._sink.timeout
        while link.credit <= 0:
            what = f"sending to {destination!r}"
            self._connection.check(link, what)
            if time.monotonic() > deadline:
                raise TransientError(
                    f"{self._connection.broker} takes no more messages for {destination!r}: it gave no "
                    f"credit for {self._sink.timeout:g} s, probably because the destination is full"
                )
            self._connection.wait_for_bytes(1.0, what)
            self._take_answers()

    def _wait_for_answers(self, most: int) -> None:
        """Wait until at most that many messages are not answered."""
        self._take_answers()
        if len(self._waiting) <= most:
            return
        _, destination, first = self._waiting[0]
        link, what = first.link, f"sending to {destination!r}"
        self._connection.wait(lambda: first.settled or link.state & Endpoint.REMOTE_CLOSED, what)
        if not first.settled:
            self._connection.check(link, what)
        self._take_answers()

    def _take_answers(self) -> None:
        waiting = self._waiting
        while waiting and waiting[0][2].settled:
            row, destination, delivery = waiting.popleft()
            self._take(row, destination, delivery)
            delivery.settle()

    def _take(self, row: int, destination: str, delivery: Any) -> None:
        state = delivery.remote_state
        if state == Delivery.ACCEPTED:
            return
        what = f"{self._connection.broker} did not accept a message for {destination!r}"
        if state != Delivery.REJECTED:
            raise TransientError(f"{what}: it was returned ({state})")
        condition = delivery.remote.condition
        if condition and condition.name == "amqp:resource-limit-exceeded":
            raise refusal_of(condition, what)
        reason = f"{condition.name}: {condition.description}" if condition else "no reason given"
        self._refuse(row, "RejectedError", f"{what}: {reason}")

    def _refuse(self, row: int, kind: str, error: str) -> None:
        self._refusals.append(Refusal(row, kind, error))

    def _link(self, destination: str) -> Any | None:
        """Return the open link to a destination; None where rows name one that the broker refuses."""
        if destination in self._refused:
            return None
        if destination in self._links:
            self._links.move_to_end(destination)
            return self._links[destination]
        if len(self._links) >= _LINKS:
            self._end_oldest()
        link = self._connection.sender(destination, self._sink.destination_kind)
        try:
            self._connection.attach(link, f"sending to {destination!r}")
        except ConfigError as error:
            if destination == self._sink.destination:
                raise
            self._refused[destination] = str(error)
            return None
        self._links[destination] = link
        return link

    def _end_oldest(self) -> None:
        while self._waiting:
            self._wait_for_answers(len(self._waiting) - 1)
        _, oldest = self._links.popitem(last=False)
        oldest.close()
        self._connection.wait(lambda: oldest.state & Endpoint.REMOTE_CLOSED, "ending to send")
        oldest.free()


def _too_large(size: int, link: Any) -> str:
    most = link.remote_max_message_size
    return f"the message has {size} bytes, and the broker takes at most {most}"
