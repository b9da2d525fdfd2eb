"""A plain client of JMS destinations for tests: proton's own blocking one, not Penstock's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from proton import Message, byte, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection
from tests.services.artemis import PASSWORD, USER, Artemis

KINDS = {"message": 0, "object": 1, "map": 2, "bytes": 3, "stream": 4, "text": 5}


class Capability(LinkOption):
    """Says that an address is a queue or a topic."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def apply(self, link: Any) -> None:
        for terminus in (link.source, link.target):
            terminus.capabilities.put_object(symbol(self._kind))


@contextmanager
def connected(artemis: Artemis, container: str | None = None) -> Iterator[BlockingConnection]:
    """Connect."""
    connection = BlockingConnection(
        artemis.url, timeout=60, user=USER, password=PASSWORD, allow_insecure_mechs=True
    )
    try:
        yield connection
    finally:
        connection.close()


def jms_message(kind: str, body: Any, **fields: Any) -> Message:
    """Return a message as a JMS client makes it."""
    annotations = {symbol("x-opt-jms-msg-type"): byte(KINDS[kind])}
    return Message(
        body=body, inferred=kind in ("bytes", "object"), durable=True,
        annotations=annotations, **fields,
    )  # fmt: skip


def send(artemis: Artemis, address: str, messages: Iterable[Message], kind: str = "queue") -> None:
    """Send messages; return when the broker has them."""
    with connected(artemis) as connection:
        sender = connection.create_sender(address, options=[Capability(kind)])
        waiting = []
        for message in messages:
            connection.wait(lambda: sender.link.credit > 0)
            waiting.append(sender.link.send(message))
        connection.wait(lambda: all(each.settled for each in waiting[-1000:]))
        connection.wait(lambda: all(each.settled for each in waiting))


def receive(artemis: Artemis, address: str) -> list[Message]:
    """Take all messages of a queue, until a new connection gets none."""
    found = []
    while more := _drained(artemis, address):
        found += more
    return found


def _drained(artemis: Artemis, address: str) -> list[Message]:
    """Take messages until the broker says that there are no more; it may say so too early."""
    found = []
    with connected(artemis) as connection:
        receiver = connection.create_receiver(address, credit=500, options=[Capability("queue")])
        link, fetcher = receiver.link, receiver.fetcher
        while True:
            link.drain(0)
            connection.wait(lambda: fetcher.has_message or link.credit <= 0)
            if not fetcher.has_message:
                return found
            while fetcher.has_message:
                found.append(fetcher.pop())
                receiver.accept()
            link.drain_mode = False
            link.flow(max(0, 500 - link.credit))


def texts(count: int, start: int = 0) -> list[Message]:
    """Return messages with numbers."""
    return [
        jms_message("text", str(n), id=f"ID:{n}") for n in range(start, start + count)
    ]  # fmt: skip
