"""What the listener's server answers: requests become records, replies come when Kafka has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from penstock.config.secrets import mask
from penstock.errors import PenstockError, RecordError, TransientError
from penstock.imports.http_listener.http_requests import Head, RequestError
from penstock.imports.http_listener.http_server import (
    RETRY,
    Exchange,
    HttpServer,
    Response,
    ServerOptions,
)
from penstock.imports.http_listener.listener_import import HttpListenerImport
from penstock.imports.http_listener.request_records import Delivery, delivery_of
from penstock.imports.http_listener.sender_check import check_of
from penstock.kafka import AsyncProducer
from penstock.kafka.producing.receipt import Receipt
from penstock.pipeline.importing import Counted

_METHODS = ("POST", "PUT")


class ListenerServer:
    """The server of one listener, in its loop."""

    def __init__(
        self,
        options: HttpListenerImport,
        producer: AsyncProducer,
        is_full: Callable[[], bool],
        largest: int,
    ) -> None:
        self._options = options
        # The most bytes of a record.
        self._largest = largest
        self._producer = producer
        self._is_full = is_full
        self._check = check_of(options.auth)
        base = options.path.rstrip("/")
        self._names = {f"{base}/{name}" if name else options.path: name for name in options.names()}
        self._records = self._reported = 0
        self._error: PenstockError | None = None
        self._server: HttpServer | None = None

    async def listen(self) -> asyncio.Server:
        """Begin to accept connections."""
        options = self._options
        settings = ServerOptions(
            options.host,
            options.port,
            options.tls.context() if options.tls else None,
            options.max_waiting,
            options.max_connections,
            options.patience,
        )
        self._server = HttpServer(settings, self)
        return await self._server.listen()

    def counted(self) -> Counted:
        """Return what was done since the last call; an error only while nothing can be written."""
        # In another thread: what comes in between is counted the next time.
        records = self._records - self._reported
        error, self._error = self._error, None
        self._reported += records
        return Counted(records, error if not records else None)

    async def close(self, grace: float) -> None:
        """Answer the requests that are under way; connections that wait are closed."""
        if self._server is not None:
            await self._server.close(grace)

    # -- requests

    def exchange(self, head: Head) -> Exchange:
        """Return what answers a request; raise for one that may not be sent, or not here."""
        self._check(head)
        name = self._names.get(head.target.partition("?")[0])
        if name is None:
            raise RequestError(404, "nothing is listening at this path")
        if head.method not in _METHODS:
            raise RequestError(405, "send records with POST or PUT", headers=("Allow: POST, PUT",))
        return Exchange(self._options.max_body, partial(self._answer, head, name))

    async def _answer(self, head: Head, name: str, body: bytes) -> Response:
        if self._is_full():
            raise RequestError(
                503, "too many records are not processed yet", ends=False, headers=(RETRY,)
            )
        delivery = delivery_of(self._options, head, name, body)
        delivery.require_sizes(self._largest)
        return await self._produce(name, delivery)

    async def _produce(self, name: str, delivery: Delivery) -> Response:
        """Write the records; return where each of them is."""
        topic, headers = self._options.topic_at(name), delivery.headers
        receipts: list[Receipt] = []
        try:
            for each in delivery.records:
                receipts.append(
                    await self._producer.produce(
                        topic, each.key, each.value, headers=headers or None
                    )
                )
            written = [await receipt for receipt in receipts]
        except PenstockError as error:
            # Each is awaited: the producer would raise failures that no one has heard when it closes.
            await asyncio.gather(*receipts, return_exceptions=True)
            raise self._refused(error) from None
        self._records += len(written)
        places = [
            {"topic": each.topic, "partition": each.partition, "offset": each.offset}
            for each in written
        ]
        return Response.of(200, {"records": places})

    def _refused(self, error: PenstockError) -> RequestError:
        """Return the reply to a request whose records Kafka did not take."""
        if isinstance(error, RecordError):
            return RequestError(413, mask(str(error)), ends=False)
        self._error = error
        away = isinstance(error, TransientError)
        reason = "Kafka is not available" if away else "Kafka refuses the records"
        return RequestError(503, reason, ends=False, headers=(RETRY,))
