"""A flow that listens, in the process of its pipeline: its endpoint, its producer, its results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from penstock.config import Connection
from penstock.flows.listener.endpoint import Endpoint
from penstock.flows.listener.listener_source import FlowListenerSource
from penstock.flows.listener.reply import Reply, replies_of
from penstock.flows.listener.reply_reader import ReplyReader
from penstock.flows.listener.request_record import Request
from penstock.flows.listener.shared_server import SERVERS, SharedServer
from penstock.kafka import AsyncProducer
from penstock.pipeline.importing import Counted, Listener

# How long a flow that stops waits for the results of requests that are under way.
_GRACE = 10.0


class FlowListener(Listener):
    """Requests of one flow. `port` is where it listens, once it is started."""

    def __init__(
        self, source: FlowListenerSource, connection: Connection, is_full: Callable[[], bool]
    ) -> None:
        self.port = 0
        self._source = source
        self._connection = connection
        self.endpoint = Endpoint(source, self._store, is_full)
        self._server: SharedServer | None = None
        self._producer: AsyncProducer | None = None
        self._replies: ReplyReader | None = None

    def start(self) -> None:
        """Listen from now on; raise where that is not possible."""
        timeout = self._source.trigger.accept_timeout
        self._producer = AsyncProducer(
            self._connection,
            queue_timeout=timeout,
            **{
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": int(timeout * 1000),
            },
        )
        if self._source.trigger.reply == "result":
            # Before the first request: its result must not come before the reader.
            topic = replies_of(self._source.flow)
            self._replies = ReplyReader(self._connection, topic, self._deliver)
            self._replies.start()
        self._server = SERVERS.join(self.endpoint)
        self.port = self._server.port

    def counted(self) -> Counted:
        """Return what was done since the last call."""
        return self.endpoint.counted()

    def close(self) -> None:
        """Accept nothing more, answer what is under way, and end."""
        server, self._server = self._server, None
        if server is not None:
            server.run(self.endpoint.close(_GRACE))
            if self._producer is not None:
                server.run(self._producer.close())
            SERVERS.leave(server, self.endpoint)
        elif self._producer is not None:
            asyncio.run(self._producer.close())
        if self._replies is not None:
            self._replies.close()

    async def _store(self, request: Request) -> None:
        assert self._producer is not None  # noqa: S101 - it is made before the server begins
        topic, id = self._source.topic, request.id.encode()
        receipt = await self._producer.produce(topic, id, request.value, headers=request.headers)
        await receipt

    def _deliver(self, replies: list[tuple[str, Reply]]) -> None:
        """Pass results from the reader's thread to the loop."""
        server = self._server
        if server is not None:
            with suppress(RuntimeError):  # the loop has ended
                server.loop.call_soon_threadsafe(self.endpoint.deliver, replies)
