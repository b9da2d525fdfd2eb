"""Requests with an idempotency key: a second one gets the id and the result of the first.

They are known in the memory of this process, the latest ones: a limited number, and limited bytes of
results. The id is made of the key, so that a request that is not known any more has the same id again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from penstock.flows.listener.reply import Reply

MOST_KEYS = 10_000
MOST_BYTES = 64 * 2**20
_FLOWS = uuid5(NAMESPACE_URL, "penstock:flows")


def id_of(flow: str, key: bytes | None) -> str:
    """Return the id of a request: of its key, or a random one.

    >>> id_of("orders", b"k-1") == id_of("orders", b"k-1"), id_of("orders", b"k-1") == id_of("a", b"k-1")
    (True, False)
    """
    if key is None:
        return str(uuid4())
    flow_space: UUID = uuid5(_FLOWS, flow)
    return str(uuid5(flow_space, key.decode("latin-1")))


class Pending:
    """A request from the moment on that it is accepted: others with its key wait for the same futures."""

    __slots__ = ("__weakref__", "digest", "id", "key", "reply", "stored")

    def __init__(self, id: str, key: bytes | None = None, digest: bytes = b"") -> None:
        loop = asyncio.get_running_loop()
        self.id = id
        self.key = key
        # Of the request, to refuse another one under the same key.
        self.digest = digest
        # Its record is in Kafka; an exception where Kafka did not take it.
        self.stored: asyncio.Future[None] = loop.create_future()
        # None: the listener ends before there is a result.
        self.reply: asyncio.Future[Reply | None] = loop.create_future()


class KnownRequests:
    """The latest requests with a key."""

    def __init__(self, most_keys: int = MOST_KEYS, most_bytes: int = MOST_BYTES) -> None:
        self._most_keys = most_keys
        self._most_bytes = most_bytes
        self._by_key: OrderedDict[bytes, Pending] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: bytes) -> Pending | None:
        """Return the request with this key, None where it is not known."""
        return self._by_key.get(key)

    def add(self, pending: Pending) -> None:
        """Remember a request; the oldest one is forgotten where there are too many."""
        if pending.key is not None:
            self._by_key[pending.key] = pending
            self._shrink()

    def replied(self, pending: Pending) -> None:
        """Count the result of a request that is known."""
        if pending.key is not None and self._by_key.get(pending.key) is pending:
            self._bytes += _size(pending)
            self._shrink()

    def forget(self, pending: Pending) -> None:
        """Forget a request that Kafka did not take: it is sent again."""
        if pending.key is not None and self._by_key.get(pending.key) is pending:
            del self._by_key[pending.key]
            self._bytes -= _size(pending)

    def _shrink(self) -> None:
        while len(self._by_key) > self._most_keys or self._bytes > self._most_bytes:
            _, oldest = self._by_key.popitem(last=False)
            self._bytes -= _size(oldest)


def _size(pending: Pending) -> int:
    reply = pending.reply.result() if pending.reply.done() else None
    return len(reply.body) if reply else 0
