"""Runs the application with uvicorn in a thread, so that the main thread is free for signals."""

from __future__ import annotations

import asyncio
import socket
from threading import Event, Thread
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.errors import SetupError
from penstock.server.app_state import end_streams
from penstock.server.listening import TlsFiles

# Requests that are under way get this long at the end.
_GRACE = 5
_START = 30.0
# A client has this long for the head of a request, twice at the most.
_HEAD = 20.0


class ApiServer:
    """The API at a socket. `start` returns when requests are answered, `stop` when none are left."""

    def __init__(
        self, app: Any, at: socket.socket, tls: TlsFiles | None = None, *, access_log: bool = False
    ) -> None:
        self._app = app
        self._socket = at
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_config=None,  # logging is set up by the command line
                access_log=access_log,
                lifespan="on",
                http=_Protocol,
                ws="none",
                # The access check reads these headers itself, and only behind a proxy.
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=_GRACE,
                ssl_certfile=tls.certificate if tls else None,
                ssl_keyfile=tls.key if tls else None,
            )
        )
        self._thread = Thread(target=self._run, name="api", daemon=True)

    @property
    def port(self) -> int:
        """Return the port that the server listens at."""
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Answer requests from now on."""
        self._thread.start()
        self._server.ready.wait(_START)
        if not self._server.started:
            raise SetupError("the server did not start; its log has the reason")

    def is_running(self) -> bool:
        """Return whether requests are answered."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Answer the requests that are under way, end streams, and stop."""
        end_streams(self._app)
        self._server.should_exit = True
        self._thread.join(_GRACE + 5)
        self._socket.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._server.ready.set()


class _Protocol(H11Protocol):
    """HTTP of uvicorn, which itself waits forever for the head of a request."""

    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _look(self, before: object) -> None:
        """Close the connection if it has waited for a request since the last look."""
        waits = self.cycle is None or self.cycle.response_complete
        if waits and self.cycle is before:
            self.transport.close()
            return
        self._watch = self.loop.call_later(_HEAD, self._look, self.cycle if waits else self)


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()
