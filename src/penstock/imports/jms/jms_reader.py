"""Receives messages of one destination, and acknowledges them when Kafka has them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from proton import Delivery, Endpoint, Terminus

from penstock.errors import PenstockError
from penstock.imports.jms.jms_records import Records
from penstock.pipeline.importing import BadRecord, Portion, Position, Reader

if TYPE_CHECKING:
    from penstock.imports.jms.jms_import import JmsPart
    from penstock.sinks.jms.amqp_connection import AmqpConnection

# How long nothing comes before the broker is asked whether there is more, in seconds.
_QUIET = 0.01
# A portion has at most about this many bytes.
_PORTION = 8 * 2**20


class JmsReader(Reader):
    """An open destination. What is not acknowledged when it ends goes back to the broker."""

    def __init__(
        self, connection: AmqpConnection, part: JmsPart, position: Position | None
    ) -> None:
        self._connection = connection
        self._what = f"receiving from {part.destination!r}"
        self._options = part.options
        self._count = (position or {}).get("messages", 0)
        self._records = Records(
            part.destination, part.options.key, with_headers=part.options.headers
        )
        self._taken: list[Any] = []
        self._message = _Incoming(part.options.max_bytes)
        self._link = receiving_link(connection, part)
        connection.attach(self._link, self._what)

    def take(self, most: int) -> Iterator[Portion]:
        """Yield messages until the broker has no more, or these are enough."""
        left = most
        while left > 0:
            messages, bad = self._receive(left)
            received = len(messages) + len(bad)
            if not received:
                return
            left -= received
            self._count += received
            now = int(time.time() * 1000)
            yield self._records.portion(messages, bad, now, {"messages": self._count})

    def settle(self) -> None:
        """Acknowledge everything that was taken."""
        for delivery in self._taken:
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
        self._taken = []
        self._connection.flush("acknowledging messages")

    def release(self) -> None:
        """Give back what is not acknowledged, where possible without counting it as an attempt."""
        with suppress(PenstockError):
            self._ask_for_the_rest()
            self._connection.wait(self._is_emptied, "ending to receive")
            for delivery in self._taken:
                delivery.update(Delivery.RELEASED)
                delivery.settle()
            self._connection.flush("returning messages")
            # Detached, not closed: a durable subscription stays.
            self._link.detach()
            self._connection.flush("ending to receive")

    def _receive(self, most: int) -> tuple[list[bytes], list[BadRecord]]:
        """Return what comes next; nothing when the broker has nothing more now."""
        messages: list[bytes] = []
        bad: list[BadRecord] = []
        size = 0
        most = min(most, self._options.prefetch)
        heard = time.monotonic()
        self._grant(most)
        while len(messages) + len(bad) < most and size < _PORTION:
            if (received := self._next()) is not None:
                (messages if isinstance(received, bytes) else bad).append(received)  # type: ignore[arg-type]
                size += len(received) if isinstance(received, bytes) else 0
                continue
            if self._is_complete() and self._link.current is None:
                break
            self._connection.check(self._link, self._what)
            before = self._progress
            self._connection.wait_for_bytes(_QUIET, self._what)
            if self._progress != before:
                heard = time.monotonic()
            elif time.monotonic() - heard > _QUIET:
                self._ask_for_the_rest()
                self._connection.wait(
                    lambda: self._is_complete() or self._link.queued or self._is_closed, self._what
                )
        return messages, bad

    @property
    def _progress(self) -> tuple[int, int]:
        return self._link.queued, self._connection.session.incoming_bytes

    @property
    def _is_closed(self) -> bool:
        return bool(self._link.state & Endpoint.REMOTE_CLOSED)

    def _grant(self, wanted: int) -> None:
        """Allow the broker to send that many messages; what it may send already counts."""
        self._link.drain_mode = False
        if (more := wanted - self._link.credit) > 0:
            self._link.flow(more)

    def _ask_for_the_rest(self) -> None:
        """Let the broker send what it has now, and take back the credit that is left."""
        if not self._link.drain_mode:
            self._link.drain(0)

    def _is_complete(self) -> bool:
        """Return whether nothing more can come: no credit is left at the broker."""
        return bool(self._link.credit <= self._link.queued)

    def _is_emptied(self) -> bool:
        """Receive without reading; return whether nothing more can come."""
        while self._next() is not None:
            pass
        return self._link.current is None and self._is_complete()

    def _next(self) -> bytes | BadRecord | None:
        """Return the next message; None while it is not complete."""
        delivery = self._link.current
        if delivery is None or not delivery.readable:
            return None
        if delivery.pending:
            self._message.add(self._link.recv(delivery.pending))
        if delivery.aborted:
            self._message.end()
            self._link.advance()
            delivery.settle()
            return None
        if delivery.partial:
            return None
        self._link.advance()
        self._taken.append(delivery)
        return self._message.end()


class _Incoming:
    """The bytes of a message that comes in, as long as they are not too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes | None) -> None:
        if not data:
            return
        self._size += len(data)
        if self._size > self._most:
            self._parts = []
        else:
            self._parts.append(bytes(data))

    def end(self) -> bytes | BadRecord:
        """Return the message, or what it is instead, and begin the next one."""
        parts, size = self._parts, self._size
        self._parts, self._size = [], 0
        if size <= self._most:
            return b"".join(parts)
        return BadRecord(
            None,
            f"the message has {size} bytes, and at most {self._most} are allowed; raise max_bytes",
            "TooLargeError",
        )


def receiving_link(connection: AmqpConnection, part: JmsPart) -> Any:
    """Return the link that receives from a queue or a subscription, not open yet."""
    options = part.options
    if part.subscription is None:
        name = f"penstock-{uuid4()}"
        return connection.receiver(part.destination, name, ("queue",), options.selector)
    kinds: tuple[str, ...] = ("topic",)
    if options.shared:
        # `global`: a shared subscription that belongs to no client id.
        kinds = ("topic", "shared") if options.client_id else ("topic", "shared", "global")
    link = connection.receiver(part.destination, part.subscription, kinds, options.selector)
    link.source.durability = Terminus.DELIVERIES
    link.source.expiry_policy = Terminus.EXPIRE_NEVER
    return link


def has_message(connection: AmqpConnection, part: JmsPart) -> bool:
    """Return whether a queue has a message, with a browser that gets a copy of its first one."""
    what = f"browsing {part.destination!r}"
    link = receiving_link(connection, part)
    link.source.distribution_mode = Terminus.DIST_MODE_COPY
    connection.attach(link, what)
    link.drain(1)
    # One that was received, even only its beginning, is enough.
    connection.wait(
        lambda: link.current or link.credit <= link.queued or link.state & Endpoint.REMOTE_CLOSED,
        what,
    )
    connection.check(link, what)
    found = link.current is not None
    link.close()
    connection.wait(lambda: link.state & Endpoint.REMOTE_CLOSED, what)
    link.free()
    return found
