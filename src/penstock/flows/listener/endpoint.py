"""The requests of one flow: checked, in Kafka, then answered; at once, or with the flow's result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from penstock.config.secrets import mask
from penstock.errors import PenstockError, RecordError, TransientError
from penstock.flows.listener.known_requests import KnownRequests, Pending, id_of
from penstock.flows.listener.reply import Reply, error_body
from penstock.flows.listener.request_record import Request, received
from penstock.flows.listener.sender_auth import body_check, head_check
from penstock.imports.http_listener.http_requests import Head, RequestError
from penstock.imports.http_listener.http_server import JSON, RETRY, Exchange, Response
from penstock.pipeline.importing import Counted

if TYPE_CHECKING:
    from penstock.flows.listener.listener_source import FlowListenerSource

Store = Callable[[Request], Awaitable[None]]
"""Writes a request to Kafka; returns when it is on all replicas in sync."""
_LONGEST_KEY = 255
_TICK = 0.02


class Endpoint:
    """What answers the requests of one flow, in the loop of its server."""

    def __init__(
        self,
        source: FlowListenerSource,
        store: Store,
        is_full: Callable[[], bool],
        known: KnownRequests | None = None,
    ) -> None:
        self.flow, self.trigger = source.flow, source.trigger
        self._store = store
        self._is_full = is_full
        self._check = head_check(self.trigger.auth)
        self._check_body = body_check(self.trigger.auth)
        self._known = known or KnownRequests()
        # Those that a connection waits for, and those with a key that is known: nothing else keeps them.
        self._pending: WeakValueDictionary[str, Pending] = WeakValueDictionary()
        self._open = self._stored = self._reported = 0
        self._error: PenstockError | None = None
        self._closing = False

    # -- for the process

    def counted(self) -> Counted:
        """Return what was done since the last call; an error only while nothing can be written."""
        records = self._stored - self._reported
        error, self._error = self._error, None
        self._reported += records
        return Counted(records, error if not records else None)

    def deliver(self, replies: Iterable[tuple[str, Reply]]) -> None:
        """Take results of the flow; those that no request waits for are dropped."""
        for id, reply in replies:
            pending = self._pending.get(id)
            if pending is not None and not pending.reply.done():
                pending.reply.set_result(reply)
                self._known.replied(pending)

    async def close(self, grace: float) -> None:
        """Accept nothing more, and answer the requests that are under way: in time with their result."""
        self._closing = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        while self._open and loop.time() < deadline:
            await asyncio.sleep(_TICK)
        for pending in [*self._pending.values()]:
            if not pending.reply.done():
                pending.reply.set_result(None)
        while self._open and loop.time() < deadline + self.trigger.accept_timeout:
            await asyncio.sleep(_TICK)

    # -- a request

    def exchange(self, head: Head) -> Exchange:
        """Return how a request goes on; raise for one that is refused."""
        self._check(head)
        return Exchange(self.trigger.max_bytes, partial(self._answer, head))

    async def _answer(self, head: Head, body: bytes) -> Response:
        self._check_body(head, body)
        self._require_room()
        self._open += 1
        try:
            pending = await self._accepted(head, body)
            return await self._response(pending)
        finally:
            self._open -= 1

    def _require_room(self) -> None:
        most = self.trigger.max_waiting
        if self._open >= most:
            raise _refusal(429, f"{most} requests wait already (max_waiting)")
        if self._closing:
            raise _refusal(503, "the flow stops")
        if self._is_full():
            raise _refusal(503, "too many requests are not processed yet")

    async def _accepted(self, head: Head, body: bytes) -> Pending:
        """Return the request when it is in Kafka: by this call, or by the first one with its key."""
        key = self._key(head)
        request = received(self.trigger.format, head, body, id_of(self.flow, key))
        digest = b"" if key is None else _digest(head, body)
        # One that is not known any more is still the first one while a connection waits for it.
        first = None
        if key is not None:
            first = self._known.get(key) or self._pending.get(request.id)
        if first is not None:
            if first.digest != digest:
                name = self.trigger.idempotency_header
                raise RequestError(
                    422, f"this {name} was given with another request; give a new one", ends=False
                )
            await asyncio.shield(first.stored)
            return first
        pending = Pending(request.id, key, digest)
        await self._first(pending, request)
        return pending

    async def _first(self, pending: Pending, request: Request) -> None:
        # Before the record is written: the result may be here before the receipt.
        self._pending[pending.id] = pending
        self._known.add(pending)
        try:
            await self._store(request)
        except PenstockError as error:
            refusal = self._refused(error)
            self._forget(pending, refusal)
            raise refusal from None
        except BaseException:
            self._forget(pending, _refusal(503, "the flow stops"))
            raise
        self._stored += 1
        pending.stored.set_result(None)

    def _forget(self, pending: Pending, refusal: RequestError) -> None:
        self._known.forget(pending)
        self._pending.pop(pending.id, None)
        pending.stored.set_exception(refusal)
        pending.stored.exception()  # there may be no other request that waits for it

    async def _response(self, pending: Pending) -> Response:
        own = (f"X-Request-Id: {pending.id}",)
        if self.trigger.reply == "accepted":
            return Response(202, b'{"id":"%s"}' % pending.id.encode(), JSON, own)
        await asyncio.wait([pending.reply], timeout=self.trigger.timeout)
        reply = pending.reply.result() if pending.reply.done() else None
        if reply is None:
            text = "there is no result in time; the request is stored, and will be processed"
            return Response(504, error_body(pending.id, "CORE:TIMEOUT", text), JSON, own)
        return Response(reply.status, reply.body, reply.content_type, own)

    def _key(self, head: Head) -> bytes | None:
        key = head.one(self.trigger.idempotency_header)
        if key is not None and not 0 < len(key) <= _LONGEST_KEY:
            name = self.trigger.idempotency_header
            raise RequestError(
                400, f"{name} has {len(key)} bytes; allowed are 1 to {_LONGEST_KEY}", ends=False
            )
        return key

    def _refused(self, error: PenstockError) -> RequestError:
        """Return the reply to a request that Kafka did not take."""
        if isinstance(error, RecordError):
            return RequestError(413, mask(str(error)), ends=False)
        self._error = error
        away = isinstance(error, TransientError)
        return _refusal(503, "Kafka is not available" if away else "Kafka refuses the request")


def _refusal(status: int, reason: str) -> RequestError:
    return RequestError(status, reason, ends=False, headers=(RETRY,))


def _digest(head: Head, body: bytes) -> bytes:
    return sha256(f"{head.method} {head.target}\n".encode() + body).digest()
