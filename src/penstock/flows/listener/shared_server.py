"""The servers of this process: flows with the same address share one, each with its path and method."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeVar

from penstock.config.logs import event_logger
from penstock.errors import ConfigError
from penstock.flows.definition.triggers import HttpTrigger
from penstock.flows.listener.endpoint import Endpoint
from penstock.imports.http_listener.http_requests import Head, RequestError
from penstock.imports.http_listener.http_server import Exchange, HttpServer, ServerOptions
from penstock.imports.http_listener.listener_options import ListenerTls

log = event_logger(__name__)
T = TypeVar("T")
_GRACE = 5.0


@dataclass(frozen=True)
class Address:
    """Where a server listens, and the certificate that it shows."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @classmethod
    def of(cls, trigger: HttpTrigger) -> Address:
        """Return the address of a trigger."""
        tls = trigger.tls
        return cls(trigger.host, trigger.port, *((tls.certificate, tls.key) if tls else ()))

    def options(self) -> ServerOptions:
        """Return the options of its server; raise where the certificate cannot be read."""
        tls = None
        if self.certificate is not None and self.key is not None:
            tls = ListenerTls(certificate=self.certificate, key=self.key).context()
        return ServerOptions(self.host, self.port, tls)


class SharedServer:
    """A server with its thread."""

    def __init__(self, address: Address) -> None:
        # With the port that was chosen, once it is started.
        self.address = address
        # By path, then by method.
        self.routes: dict[str, dict[str, Endpoint]] = {}
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self.loop.run_forever, name="flow-listener", daemon=True)
        self._server: HttpServer | None = None
        self._sockets: asyncio.Server | None = None

    def exchange(self, head: Head) -> Exchange:
        """Return how a request goes on, as the flow at its path says."""
        methods = self.routes.get(head.target.partition("?")[0])
        if not methods:
            raise RequestError(404, "no flow listens at this path")
        endpoint = methods.get(head.method)
        if endpoint is None:
            allowed = ", ".join(sorted(methods))
            raise RequestError(405, f"send it with {allowed}", headers=(f"Allow: {allowed}",))
        return endpoint.exchange(head)

    def start(self) -> None:
        """Listen from now on; raise where the address or the certificate cannot be used."""
        address = self.address
        self._thread.start()
        try:
            self._server = HttpServer(address.options(), self)
            self._sockets = self.run(self._server.listen())
        except (OSError, OverflowError) as error:
            self._end()
            raise ConfigError(
                f"the trigger 'http' cannot listen on {address.host}:{address.port}: {error}; give "
                "another port or host, or check the files of 'tls'"
            ) from error
        self.address = replace(address, port=self._sockets.sockets[0].getsockname()[1])

    @property
    def port(self) -> int:
        """Return the port on which it listens."""
        return self.address.port

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the server's loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        """Close all connections, and end the thread."""
        self.run(self._close())
        self._end()

    async def _close(self) -> None:
        if self._sockets is not None:
            self._sockets.close()
        if self._server is not None:
            await self._server.close(_GRACE)

    def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Servers:
    """The servers of a process, by their addresses; port 0 is another one each time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[tuple[str, int], SharedServer] = {}

    def join(self, endpoint: Endpoint) -> SharedServer:
        """Return the server of an endpoint, which answers its requests from now on."""
        trigger = endpoint.trigger
        with self._lock:
            server = self._server(Address.of(trigger))
            methods = server.routes.setdefault(trigger.path, {})
            other = methods.get(trigger.method)
            if other is not None:
                raise ConfigError(
                    f"the flow {other.flow!r} listens for {trigger.method} {trigger.path} on "
                    f"{trigger.host}:{server.port} in this process; give {endpoint.flow!r} another "
                    "path, method or port"
                )
            methods[trigger.method] = endpoint
        scheme = "https" if trigger.tls else "http"
        url = f"{scheme}://{trigger.host}:{server.port}{trigger.path}"
        log.info("flow_listens", flow=endpoint.flow, method=trigger.method, url=url)
        return server

    def leave(self, server: SharedServer, endpoint: Endpoint) -> None:
        """Answer no more requests of an endpoint; the last one closes the server."""
        trigger = endpoint.trigger
        with self._lock:
            methods = server.routes[trigger.path]
            del methods[trigger.method]
            if not methods:
                del server.routes[trigger.path]
            if server.routes:
                return
            self._open.pop((server.address.host, server.port), None)
        server.close()

    def _server(self, address: Address) -> SharedServer:
        known = self._open.get((address.host, address.port)) if address.port else None
        if known is None:
            known = SharedServer(address)
            known.start()
            self._open[address.host, known.port] = known
        elif known.address != address:
            raise ConfigError(
                f"another flow listens on {address.host}:{address.port} in this process with other "
                "files of 'tls'; give the same ones, or another port"
            )
        return known


SERVERS = Servers()
"""Those of this process."""
