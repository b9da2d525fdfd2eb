"""An HTTP/1.1 server for other programs: connections, their requests one after the other, their replies.

What a request means is decided by a service; all limits of size, number and time are kept here.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import Any, NamedTuple, Protocol

from penstock.imports.http_listener.http_requests import (
    HEAD_LIMIT,
    Head,
    RequestError,
    read_body,
    read_head,
)

JSON = "application/json"
RETRY = "Retry-After: 1"
# How long a refused client may go on sending: a connection that is closed at once loses the reply.
_FAREWELL = 1.0
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_WITHOUT_BODY = (204, 304)


class Response(NamedTuple):
    """What a request is answered with."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[str, ...] = ()

    @classmethod
    def of(cls, status: int, content: Any, headers: tuple[str, ...] = ()) -> Response:
        """Return a response with a JSON document."""
        body = json.dumps(content, separators=(",", ":")).encode()
        return cls(status, body, JSON, headers)


class Exchange(NamedTuple):
    """How a request whose head was accepted goes on: how large its body may be, and what answers it."""

    max_body: int
    answer: Callable[[bytes], Awaitable[Response]]


class Service(Protocol):
    """What answers the requests of a server."""

    def exchange(self, head: Head) -> Exchange:
        """Return how a request goes on; raise RequestError for one that is refused."""


@dataclass(frozen=True)
class ServerOptions:
    """Where a server listens, and its limits."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    # Of the bodies of all requests that are not answered yet.
    max_waiting: int = 64 * 2**20
    max_connections: int = 1000
    # How long a client may take for a head, a body or a pause.
    patience: float = 30.0


class Deadlines:
    """When tasks give up what they wait for. One timer looks after all: one for each wait costs more."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._by_task: dict[asyncio.Task[None], float] = {}

    @contextmanager
    def limited(self, task: asyncio.Task[None]) -> Iterator[None]:
        """Raise TimeoutError in this task where it waits for longer than the patience."""
        self._by_task[task] = monotonic() + self._patience
        try:
            yield
        except asyncio.CancelledError:
            if task in self._by_task:  # it was cancelled by someone else
                raise
            raise asyncio.TimeoutError from None
        finally:
            self._by_task.pop(task, None)

    async def watch(self) -> None:
        """End the waits whose time is up, until this is cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._patience / 4))
            now = monotonic()
            for task in [task for task, until in self._by_task.items() if until < now]:
                del self._by_task[task]
                task.cancel()


class HttpServer:
    """The server, in its loop."""

    def __init__(self, options: ServerOptions, service: Service) -> None:
        self._options = options
        self._service = service
        self._room = options.max_waiting
        self._connections: dict[asyncio.Task[None], StreamWriter] = {}
        self._busy: set[asyncio.Task[None]] = set()
        self._closing = False
        self._deadlines = Deadlines(options.patience)
        self._watch: asyncio.Task[None] | None = None

    async def listen(self) -> asyncio.Server:
        """Begin to accept connections."""
        options = self._options
        self._watch = asyncio.get_running_loop().create_task(self._deadlines.watch())
        return await asyncio.start_server(
            self._connected, options.host, options.port, limit=HEAD_LIMIT, ssl=options.tls
        )

    async def close(self, grace: float) -> None:
        """Answer the requests that are under way; connections that wait are closed."""
        self._closing = True
        for task in [*self._connections]:
            if task not in self._busy:
                task.cancel()
        if self._connections:
            await asyncio.wait([*self._connections], timeout=grace)
        for writer in self._connections.values():
            writer.transport.abort()
        if self._watch is not None:
            self._watch.cancel()

    # -- a connection

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - the loop runs it
        self._connections[task] = writer
        try:
            await self._serve(reader, writer, task)
        except (OSError, TimeoutError, asyncio.TimeoutError, asyncio.CancelledError):
            pass  # the client is gone or too slow, or the server ends
        finally:
            self._busy.discard(task)
            self._connections.pop(task, None)
            writer.close()

    async def _serve(
        self, reader: StreamReader, writer: StreamWriter, task: asyncio.Task[None]
    ) -> None:
        stays = True
        while stays and not self._closing:
            head: Head | None = None
            try:
                head = await self._head(reader, writer, task)
                if head is None:
                    return
                self._busy.add(task)
                with self._reserving() as reserve:
                    response = await self._answer(head, reader, writer, reserve, task)
                stays = head.stays and not self._closing
                await self._write(writer, response, stays, task)
            except RequestError as error:
                stays = not error.ends and head is not None and head.stays and not self._closing
                refusal = Response.of(error.status, {"error": error.reason}, error.headers)
                await self._write(writer, refusal, stays, task)
                if not stays:
                    await self._farewell(reader, writer)
            self._busy.discard(task)

    async def _head(
        self, reader: StreamReader, writer: StreamWriter, task: asyncio.Task[None]
    ) -> Head | None:
        if len(self._connections) > self._options.max_connections:
            raise RequestError(503, "there are too many connections", headers=(RETRY,))
        try:
            with self._deadlines.limited(task):
                return await read_head(reader)
        except (TimeoutError, asyncio.TimeoutError):
            if writer.is_closing() or not reader._buffer:  # type: ignore[attr-defined]
                return None
            raise RequestError(408, "the head of the request did not arrive in time") from None

    @contextmanager
    def _reserving(self) -> Iterator[Callable[[int], None]]:
        """Give room for the bytes of one request; it is free again when the request is answered."""
        taken = 0

        def reserve(count: int) -> None:
            nonlocal taken
            if count > self._room:
                raise RequestError(503, "too many requests wait for Kafka", headers=(RETRY,))
            self._room -= count
            taken += count

        try:
            yield reserve
        finally:
            self._room += taken

    async def _answer(
        self,
        head: Head,
        reader: StreamReader,
        writer: StreamWriter,
        reserve: Callable[[int], None],
        task: asyncio.Task[None],
    ) -> Response:
        exchange = self._service.exchange(head)
        try:
            with self._deadlines.limited(task):
                body = await self._body(head, exchange.max_body, reader, writer, reserve)
        except (TimeoutError, asyncio.TimeoutError):
            raise RequestError(408, "the body of the request did not arrive in time") from None
        return await exchange.answer(body)

    async def _body(
        self,
        head: Head,
        most: int,
        reader: StreamReader,
        writer: StreamWriter,
        reserve: Callable[[int], None],
    ) -> bytes:
        length = head.length
        if length is not None and length > most:
            await read_body(reader, length, most, reserve)  # raises
        if (expected := head.one("Expect")) is not None:
            if expected.lower() != b"100-continue":
                raise RequestError(417, "the only expectation that is understood is: 100-continue")
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return await read_body(reader, length, most, reserve)

    # -- replies

    async def _write(
        self, writer: StreamWriter, response: Response, stays: bool, task: asyncio.Task[None]
    ) -> None:
        status, body, content_type, headers = response
        lines = [
            f"HTTP/1.1 {int(status)} {_PHRASES.get(status, 'Other')}",
            f"Connection: {'keep-alive' if stays else 'close'}",
            *headers,
        ]
        if status in _WITHOUT_BODY:
            body = b""
        else:
            lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        if writer.transport.get_write_buffer_size():
            try:
                with self._deadlines.limited(task):
                    await writer.drain()
            except (TimeoutError, asyncio.TimeoutError):
                writer.transport.abort()  # the client does not read, and `close` would wait for it
                raise

    async def _farewell(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Let a client that is still sending read the reply, for a moment."""
        with suppress(OSError, NotImplementedError):
            if writer.can_write_eof():
                writer.write_eof()
        with suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(self._drained(reader), _FAREWELL)

    @staticmethod
    async def _drained(reader: StreamReader) -> None:
        while await reader.read(HEAD_LIMIT):
            pass
