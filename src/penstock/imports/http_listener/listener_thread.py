"""The listener's thread, with a loop of its own: it starts and ends with the import."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.errors import ConfigError
from penstock.imports.http_listener.listener_import import HttpListenerImport
from penstock.imports.http_listener.listener_server import ListenerServer
from penstock.kafka import Admin, AsyncProducer
from penstock.kafka.producing.record_transaction import AROUND
from penstock.pipeline.importing import Counted, Listener

log = event_logger(__name__)
# Beyond the time that Kafka may take for the last request.
_GRACE = 10.0
# What librdkafka puts together by default, and the largest record of a producer, in bytes.
_LARGEST_BATCH = 1_000_000


class ListenerThread(Listener):
    """A server and its producer. `port` is where it listens, once it is started."""

    def __init__(
        self, options: HttpListenerImport, connection: Connection, is_full: Callable[[], bool]
    ) -> None:
        self.port = 0
        self._options = options
        self._connection = connection
        self._is_full = is_full
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="http-listener", daemon=True)
        self._server: ListenerServer | None = None
        self._sockets: asyncio.Server | None = None
        self._producer: AsyncProducer | None = None

    def start(self) -> None:
        """Listen from now on; raise where the port or the certificate cannot be used."""
        options = self._options
        largest = self._largest_record()
        self._producer = AsyncProducer(
            self._connection,
            queue_timeout=options.timeout,
            **{
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                # A batch that the topic does not take would refuse the records of other requests, too.
                "batch.size": max(1000, min(largest - AROUND, _LARGEST_BATCH)),
                "message.timeout.ms": int(options.timeout * 1000),
            },
        )
        self._server = ListenerServer(options, self._producer, self._is_full, largest)
        self._thread.start()
        try:
            listening = asyncio.run_coroutine_threadsafe(self._server.listen(), self._loop)
            self._sockets = listening.result()
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"the source 'http_listener' cannot listen on {options.host}:{options.port}: {error}; "
                "give another port or host, or check the files of 'tls'"
            ) from error
        self.port = self._sockets.sockets[0].getsockname()[1]
        scheme = "https" if options.tls else "http"
        log.info(
            "http_listener_started", url=f"{scheme}://{options.host}:{self.port}{options.path}"
        )

    def _largest_record(self) -> int:
        """Return how many bytes a record may have, for the producer and for each of the topics."""
        own = int(self._connection.librdkafka("producer").get("message.max.bytes", _LARGEST_BATCH))
        with Admin(self._connection) as admin:
            taken = [admin.largest_record(topic) for topic in self._options.topics()]
        return min([own, *filter(None, taken)])

    def counted(self) -> Counted:
        """Return what was done since the last call."""
        return self._server.counted() if self._server else Counted(0)

    def close(self) -> None:
        """Accept nothing more, answer what is under way, and end."""
        if not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _close(self) -> None:
        if self._sockets is not None:
            self._sockets.close()
        if self._server is not None:
            await self._server.close(self._options.timeout + _GRACE)
        if self._producer is not None:
            await self._producer.close()
