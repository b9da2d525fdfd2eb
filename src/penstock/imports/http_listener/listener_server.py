"""The server: connections, their requests one after the other, replies when Kafka has the records."""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from penstock.config.secrets import mask
from penstock.errors import PenstockError, RecordError, TransientError
from penstock.imports.http_listener.http_requests import (
    HEAD_LIMIT,
    Head,
    RequestError,
    read_body,
    read_head,
)
from penstock.imports.http_listener.listener_import import HttpListenerImport
from penstock.imports.http_listener.request_records import Delivery, delivery_of
from penstock.imports.http_listener.sender_check import check_of
from penstock.kafka import AsyncProducer
from penstock.pipeline.importing import Counted

_METHODS = ("POST", "PUT")
# How long a refused client may go on sending: a connection that is closed at once loses the reply.
_FAREWELL = 1.0
_RETRY = "Retry-After: 1"


class ListenerServer:
    """The server of one listener, in its loop."""

    def __init__(
        self, options: HttpListenerImport, producer: AsyncProducer, is_full: Callable[[], bool]
    ) -> None:
        self._options = options
        self._producer = producer
        self._is_full = is_full
        self._check = check_of(options.auth)
        base = options.path.rstrip("/")
        self._names = {f"{base}/{name}" if name else options.path: name for name in options.names()}
        self._room = options.max_waiting
        self._connections: dict[asyncio.Task[None], StreamWriter] = {}
        self._busy: set[asyncio.Task[None]] = set()
        self._closing = False
        self._records = self._reported = 0
        self._error: PenstockError | None = None

    async def listen(self) -> asyncio.Server:
        """Begin to accept connections."""
        options = self._options
        tls = options.tls.context() if options.tls else None
        return await asyncio.start_server(
            self._connected, options.host, options.port, limit=HEAD_LIMIT, ssl=tls
        )

    def counted(self) -> Counted:
        """Return what was done since the last call; an error only while nothing can be written."""
        # In another thread: what comes in between is counted the next time.
        records = self._records - self._reported
        error, self._error = self._error, None
        self._reported += records
        return Counted(records, error if not records else None)

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
                head = await self._head(reader, writer)
                if head is None:
                    return
                self._busy.add(task)
                with self._reserving() as reserve:
                    reply = await self._answer(head, reader, writer, reserve)
                stays = head.stays and not self._closing
                await self._write(writer, HTTPStatus.OK, reply, stays)
            except RequestError as error:
                stays = not error.ends and head is not None and head.stays and not self._closing
                await self._write(
                    writer, error.status, {"error": error.reason}, stays, error.headers
                )
                if not stays:
                    await self._farewell(reader, writer)
            self._busy.discard(task)

    async def _head(self, reader: StreamReader, writer: StreamWriter) -> Head | None:
        if len(self._connections) > self._options.max_connections:
            raise RequestError(503, "there are too many connections", headers=(_RETRY,))
        try:
            return await asyncio.wait_for(read_head(reader), self._options.patience)
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
                raise RequestError(503, "too many requests wait for Kafka", headers=(_RETRY,))
            self._room -= count
            taken += count

        try:
            yield reserve
        finally:
            self._room += taken

    async def _answer(
        self, head: Head, reader: StreamReader, writer: StreamWriter, reserve: Callable[[int], None]
    ) -> dict[str, Any]:
        name = self._checked(head)
        length = head.length
        if length is not None and length > self._options.max_body:
            await read_body(reader, length, self._options.max_body, reserve)  # raises
        if (expected := head.one("Expect")) is not None:
            if expected.lower() != b"100-continue":
                raise RequestError(417, "the only expectation that is understood is: 100-continue")
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await asyncio.wait_for(
                read_body(reader, length, self._options.max_body, reserve), self._options.patience
            )
        except (TimeoutError, asyncio.TimeoutError):
            raise RequestError(408, "the body of the request did not arrive in time") from None
        if self._is_full():
            raise RequestError(
                503, "too many records are not processed yet", ends=False, headers=(_RETRY,)
            )
        return await self._produce(name, delivery_of(self._options, head, name, body))

    def _checked(self, head: Head) -> str:
        """Return the name in the path; raise for a request that may not be sent, or not here."""
        self._check(head)
        name = self._names.get(urlsplit(head.target).path)
        if name is None:
            raise RequestError(404, "nothing is listening at this path")
        if head.method not in _METHODS:
            raise RequestError(405, "send records with POST or PUT", headers=("Allow: POST, PUT",))
        return name

    # -- Kafka

    async def _produce(self, name: str, delivery: Delivery) -> dict[str, Any]:
        """Write the records; return where each of them is."""
        topic, headers = self._options.topic_at(name), delivery.headers
        try:
            receipts = [
                await self._producer.produce(topic, each.key, each.value, headers=headers or None)
                for each in delivery.records
            ]
            written = [await receipt for receipt in receipts]
        except RecordError as error:
            raise RequestError(413, mask(str(error)), ends=False) from None
        except PenstockError as error:
            self._error = error
            away = isinstance(error, TransientError)
            reason = "Kafka is not available" if away else "Kafka refuses the records"
            raise RequestError(503, reason, ends=False, headers=(_RETRY,)) from None
        self._records += len(written)
        places = [
            {"topic": each.topic, "partition": each.partition, "offset": each.offset}
            for each in written
        ]
        return {"records": places}

    # -- replies

    async def _write(
        self,
        writer: StreamWriter,
        status: HTTPStatus,
        content: dict[str, Any],
        stays: bool,
        headers: Sequence[str] = (),
    ) -> None:
        body = json.dumps(content, separators=(",", ":")).encode()
        lines = [
            f"HTTP/1.1 {status.value} {status.phrase}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            f"Connection: {'keep-alive' if stays else 'close'}",
            *headers,
        ]
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        await asyncio.wait_for(writer.drain(), self._options.patience)

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
