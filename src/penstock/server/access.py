"""The access check in front of all routes: host, origin, kind and size of the body, and the caller.

It is plain ASGI, so that streams of events pass through it as they are sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio import to_thread

from penstock.config.secrets import MaskingFilter
from penstock.control.roles import Access, Grant, Role
from penstock.control.store import ControlStore
from penstock.errors import PenstockError
from penstock.server.authentication import Authenticator
from penstock.server.connect.connect_dispatch import is_connect, path_parts
from penstock.server.connect.connect_errors import as_connect, error_reply
from penstock.server.problems import INTERNAL, RefusedRequestError, internal_error, problem
from penstock.server.request_checks import (
    check_body_type,
    check_host,
    check_origin,
    client_address,
)
from penstock.server.request_head import RequestHead, Scope
from penstock.server.settings import ServerSettings, is_loopback

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PROBES = ("/health", "/ready")
"""Paths without any check: probes call them by the address of the machine, without a user."""
LOGIN = "/api/v1/login"
_LARGEST_LOGIN = 20_000
LOCAL_USER = "local"
"""The name of the caller where no login is needed."""
_LOCAL = Access(LOCAL_USER, (Grant(Role.ADMIN),))
_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
_log = logging.getLogger(__name__)
_log.addFilter(MaskingFilter())


class AccessCheck:
    """Refuses requests that are not allowed, and passes the others on with their caller."""

    def __init__(
        self, app: App, *, store: ControlStore, settings: ServerSettings, users: Authenticator
    ) -> None:
        self._app = app
        self._store = store
        self._settings = settings
        self._users = users
        # Threads of their own: logins must not wait for routes, nor routes for logins.
        self._threads = anyio.CapacityLimiter(20)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            reply = _Reply(send)
            try:
                receive = await self._checked(scope, receive)
                await self._app(scope, receive, reply.send)
            except PenstockError as error:
                in_form = as_connect if _is_of_connect(scope) else problem
                await self._refuse(in_form(error), scope, receive, reply)
            except Exception:
                _log.exception("a request failed: %s %s", scope["method"], ascii(scope["path"]))
                failed = error_reply(500, INTERNAL) if _is_of_connect(scope) else internal_error()
                await self._refuse(failed, scope, receive, reply)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _refuse(self, response: Any, scope: Scope, receive: Receive, reply: _Reply) -> None:
        if not reply.has_started:
            await response(scope, receive, reply.send)

    async def _checked(self, scope: Scope, receive: Receive) -> Receive:
        """Return what reads the body of a request that is allowed so far."""
        head = RequestHead(scope)
        state = scope.setdefault("state", {})
        peer = (scope.get("client") or ("local", 0))[0]
        state["address"] = client_address(peer, head, self._settings)
        if head.path in PROBES and not head.changes:
            return receive
        check_host(head, self._settings)
        check_origin(head, self._settings)
        check_body_type(head)
        if head.path != LOGIN:
            state["access"] = await self._caller(head, peer, state["address"])
        return await self._body(head, receive)

    async def _caller(self, head: RequestHead, peer: str, address: str) -> Access:
        if self._settings.needs_login:
            header = head.get("authorization")
            return await to_thread.run_sync(
                self._users.check, header, address, limiter=self._threads
            )
        if peer != "local" and not is_loopback(peer):
            raise RefusedRequestError(
                403, f"requests from {peer[:100]} need a login, and this server was started without"
            )
        return _LOCAL

    async def _body(self, head: RequestHead, receive: Receive) -> Receive:
        """Read the body as a whole, up to the limit, before any route sees it."""
        # Anyone can send a login: many large ones at a time must not fill the memory.
        most = _LARGEST_LOGIN if head.path == LOGIN else self._settings.largest_body
        length = head.get("content-length") or "0"
        if not length.isascii() or not length.isdigit():
            raise RefusedRequestError(400, "the header Content-Length is not a number")
        if int(length[:20]) > most:
            raise _too_large(most)
        try:
            first = await asyncio.wait_for(_whole(receive, most), self._settings.body_seconds)
        except asyncio.TimeoutError:
            raise RefusedRequestError(
                408, f"the body did not arrive within {self._settings.body_seconds:.0f} seconds"
            ) from None
        messages = [first]

        async def replayed() -> Message:
            return messages.pop() if messages else await receive()

        return replayed


async def _whole(receive: Receive, most: int) -> Message:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return {"type": "http.request", "body": b"".join(parts), "more_body": False}


def _is_of_connect(scope: Scope) -> bool:
    return is_connect(path_parts(scope["raw_path"]))


def _too_large(most: int) -> RefusedRequestError:
    # The rest of the body is not read: the connection cannot be used for another request.
    return RefusedRequestError(
        413, f"the body is larger than {most} bytes, which is the limit", Connection="close"
    )


class _Reply:
    """Sends a reply with the headers that all of them have."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            given = {name.lower() for name, _ in message["headers"]}
            added = [(name, value) for name, value in _HEADERS.items() if name not in given]
            message = {**message, "headers": [*message["headers"], *added]}
        await self._send(message)
