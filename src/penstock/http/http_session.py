"""Requests over connections that stay open: for sinks, which send many to one server."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, RemoteDisconnected
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from typing_extensions import Self

from penstock.formats.registry.http import basic
from penstock.http.connections import PlainConnection, SecureConnection
from penstock.http.http_client import Ask, Authorization, tls_context, unreachable
from penstock.http.http_reply import Reply
from penstock.http.reply_limit import ReplyLimit

_LARGEST_REPLY = 256 * 2**20
# What a server does to a connection that it closed while it was idle.
_CLOSED = (RemoteDisconnected, BrokenPipeError, ConnectionResetError, ConnectionAbortedError)


class _Open(NamedTuple):
    connection: HTTPConnection
    proxy: SplitResult | None


class HttpSession:
    """Sends one request after the other; a context manager, for one thread.

    Redirects are not followed: credentials go to the host that was named, and to no other.
    """

    def __init__(
        self,
        auth: Authorization,
        ca: str | None = None,
        timeout: float = 30.0,
        limit: ReplyLimit | None = None,
    ) -> None:
        self._auth = auth
        self._ca = ca
        self._timeout = timeout
        self._limit = limit or ReplyLimit(_LARGEST_REPLY, timeout)
        self._open: dict[tuple[str, str], _Open] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, ask: Ask) -> Reply:
        """Return the reply, whatever its status; a token that is refused is renewed once.

        Raises
        ------
        TransientError
            When there is no reply.
        ConfigError
            When the server's certificate is not trusted.
        """
        reply = self._sent(ask)
        if reply.status == 401 and self._auth.renewed():
            reply = self._sent(ask)
        return reply

    def close(self) -> None:
        """Close all connections."""
        while self._open:
            self._open.popitem()[1].connection.close()

    def _sent(self, ask: Ask) -> Reply:
        full = self._auth.applied(ask)
        split = urlsplit(full.url)
        where = (split.scheme, split.netloc)
        is_used = where in self._open
        try:
            return self._exchanged(full, split, ask.url)
        except _CLOSED as error:
            self._drop(where)
            if not is_used:
                raise unreachable(ask.url, error) from error
        except (OSError, HTTPException) as error:
            self._drop(where)
            raise unreachable(ask.url, error) from error
        except BaseException:
            self._drop(where)
            raise
        # The server closed an idle connection: the request is sent over a new one.
        return self._sent(ask)

    def _exchanged(self, ask: Ask, split: SplitResult, shown_url: str) -> Reply:
        connection, proxy = self._connection(split)
        headers = {"Accept-Encoding": "identity", **ask.headers}
        target = urlunsplit(("", "", split.path or "/", split.query, ""))
        if proxy and split.scheme == "http":
            target = urlunsplit(split._replace(path=split.path or "/", fragment=""))
            headers |= _proxy_headers(proxy)
        try:
            connection.request(ask.method, target, ask.body, headers)
        except (BrokenPipeError, ConnectionResetError):
            if connection.sock is None:
                raise
            # A server that refuses a large body replies before it has read it.
        response = connection.getresponse()
        reply = Reply(
            shown_url, response.status, response.headers, self._limit.body(response, shown_url)
        )
        is_whole = response.isclosed() or response.length == 0
        if response.will_close or not is_whole:
            self._drop((split.scheme, split.netloc))
        response.close()
        return reply

    def _connection(self, split: SplitResult) -> _Open:
        where = (split.scheme, split.netloc)
        if where not in self._open:
            self._open[where] = self._connect(split)
        return self._open[where]

    def _connect(self, split: SplitResult) -> _Open:
        proxy = _proxy_of(split)
        host, port = (proxy.hostname, proxy.port) if proxy else (split.hostname, split.port)
        if split.scheme == "http":
            return _Open(PlainConnection(host or "", port, timeout=self._timeout), proxy)
        secure = SecureConnection(
            host or "", port, timeout=self._timeout, context=tls_context(self._ca)
        )
        if proxy:
            secure.set_tunnel(split.hostname or "", split.port or 443, _proxy_headers(proxy))
        return _Open(secure, proxy)

    def _drop(self, where: tuple[str, str]) -> None:
        if dropped := self._open.pop(where, None):
            dropped.connection.close()


def _proxy_of(split: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment names for an address."""
    given = getproxies().get(split.scheme)
    if not given or proxy_bypass(split.netloc.rpartition("@")[2]):
        return None
    return urlsplit(given if "//" in given else f"http://{given}")


def _proxy_headers(proxy: SplitResult) -> Mapping[str, str]:
    if not proxy.username:
        return {}
    user, password = unquote(proxy.username), unquote(proxy.password or "")
    return {"Proxy-Authorization": basic(user, password)}
