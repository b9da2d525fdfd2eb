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


def receive(artemis: Artemis, address: str, quiet: float = 0.3) -> list[Message]:
    """Take all messages of a queue, until it gives none for a moment."""
    found = []
    with connected(artemis) as connection:
        receiver = connection.create_receiver(address, credit=500, options=[Capability("queue")])
        while True:
            if receiver.link.credit < 100:
                receiver.link.flow(400)
            try:
                found.append(receiver.receive(timeout=quiet))
            except Exception as error:  # proton's own Timeout
                if type(error).__name__ != "Timeout":
                    raise
                return found
            receiver.accept()


def texts(count: int, start: int = 0) -> list[Message]:
    """Return messages with numbers."""
    return [
        jms_message("text", str(n), id=f"ID:{n}") for n in range(start, start + count)
    ]  # fmt: skip
