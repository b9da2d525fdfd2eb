"""The client of a server's API: requests over connections that stay open, errors with the same text."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Lock, local
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from typing_extensions import Self

from penstock.api_client.server_address import Credentials, ServerAddress
from penstock.api_client.server_problems import connect_error, problem_error, server_away
from penstock.errors import ConfigError, PenstockError
from penstock.http.http_client import tls_context

Item = TypeVar("Item")
Result = TypeVar("Result")
PREFIX = "/api/v1"
YAML, JSON = "application/yaml", "application/json"
_TIMEOUT = 60.0
_LARGEST = 256 * 2**20
_PAGE = 1000
# The server works in threads of one process: more at once would only wait there.
_PARALLEL = 8


@dataclass(frozen=True)
class ServerReply:
    """The data of a reply, and the entity tag of a deployment in it."""

    status: int
    data: Any
    etag: str | None = None


class ServerClient:
    """Sends requests to one server; a context manager. Several threads may use it."""

    def __init__(
        self,
        address: ServerAddress,
        credentials: Credentials | None = None,
        timeout: float = _TIMEOUT,
    ) -> None:
        self.address = address
        self.credentials = credentials
        self._timeout = timeout
        self._local = local()
        self._lock = Lock()
        self._open: list[HTTPConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            while self._open:
                self._open.pop().close()

    def get(self, path: str, **query: Any) -> Any:
        """Return the data at a path below /api/v1."""
        return self.send("GET", path, query=query).data

    def items(self, path: str, **query: Any) -> Iterator[Any]:
        """Yield all items of a list, page after page."""
        cursor = None
        while True:
            page = self.get(path, limit=_PAGE, cursor=cursor, **query)
            yield from page["items"]
            cursor = page.get("next")
            if not cursor:
                return

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ServerReply:
        """Send a request; raise the error that a problem in the reply describes."""
        request = self._request(method, PREFIX + path, body, query or {}, headers or {})
        status, found, content = self._exchanged(request)
        if not 200 <= status < 300:
            raise problem_error(self.address, status, found, content)
        return ServerReply(status, self._data(content), found.get("ETag"))

    def connect(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Return the data at a path of Kafka Connect's API, which is not below /api/v1."""
        status, found, content = self._exchanged(self._request(method, path, body, query, {}))
        if not 200 <= status < 300:
            raise connect_error(self.address, status, found, content)
        return self._data(content)

    def text(self, path: str) -> str:
        """Return the text at a path that is not below /api/v1, as /metrics."""
        status, found, content = self._exchanged(self._request("GET", path, None, {}, {}))
        if status != 200:
            raise problem_error(self.address, status, found, content)
        return content.decode("utf-8", "replace")

    def each(
        self, do: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result | PenstockError]:
        """Call `do` for all items, several at once; an error takes the place of its result."""

        def attempt(item: Item) -> Result | PenstockError:
            try:
                return do(item)
            except PenstockError as error:
                return error

        if not items:
            return []
        pool = ThreadPoolExecutor(min(_PARALLEL, len(items)))
        try:
            return list(pool.map(attempt, items))
        finally:
            # At Ctrl-C those that have not begun do not begin.
            pool.shutdown(wait=True, cancel_futures=True)

    def stream(self, path: str, headers: Mapping[str, str], **query: Any) -> Iterator[bytes]:
        """Yield the lines of a reply as they arrive, over a connection of its own."""
        request = self._request("GET", PREFIX + path, None, query, headers)
        connection = self._connect()
        try:
            connection.request(request.method, request.target, None, request.headers)
            response = connection.getresponse()
            if response.status != 200:
                content = response.read(_LARGEST)
                raise problem_error(self.address, response.status, response.headers, content)
            while line := response.readline(2**20):
                yield line
        except (OSError, HTTPException) as error:
            raise server_away(self.address, error) from error
        finally:
            connection.close()

    def _request(
        self,
        method: str,
        path: str,
        body: Any,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> _Request:
        pairs = [
            (name, each)
            for name, value in query.items()
            for each in (value if isinstance(value, (list, tuple)) else [value])
            if each is not None
        ]
        target = urlsplit(self.address.url).path + path + (f"?{urlencode(pairs)}" if pairs else "")
        own = {"Accept": JSON, **headers}
        if self.credentials is not None:
            own["Authorization"] = f"{self.credentials.scheme} {self.credentials.token}"
        if body is not None:
            own.setdefault("Content-Type", JSON)
        return _Request(method, target, own, _encoded(body))

    def _exchanged(self, request: _Request) -> tuple[int, Message, bytes]:
        connection, is_used = self._connection()
        try:
            return self._over(connection, request)
        except (OSError, HTTPException) as error:
            connection.close()
            if not is_used or isinstance(error, TimeoutError):
                raise server_away(self.address, error) from error
        except BaseException:
            connection.close()
            raise
        # The server closed a connection that was idle: the request is sent over a new one.
        try:
            return self._over(connection, request)
        except (OSError, HTTPException) as error:
            connection.close()
            raise server_away(self.address, error) from error

    def _over(self, connection: HTTPConnection, request: _Request) -> tuple[int, Message, bytes]:
        try:
            connection.request(request.method, request.target, request.body, request.headers)
        except (BrokenPipeError, ConnectionResetError):
            if connection.sock is None or not request.body:
                raise
            # A server that refuses a large body replies before it has read it.
        response: HTTPResponse = connection.getresponse()
        content = response.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ConfigError(f"{self.address.url} sent more than {_LARGEST} bytes; ask for less")
        return response.status, response.headers, content

    def _connection(self) -> tuple[HTTPConnection, bool]:
        """Return the connection of this thread, and whether it was used before."""
        existing: HTTPConnection | None = getattr(self._local, "connection", None)
        if existing is not None:
            return existing, existing.sock is not None
        self._local.connection = self._connect()
        with self._lock:
            self._open.append(self._local.connection)
        return self._local.connection, False

    def _connect(self) -> HTTPConnection:
        parts = urlsplit(self.address.url)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return HTTPConnection(host, parts.port, timeout=self._timeout)
        return HTTPSConnection(host, parts.port, timeout=self._timeout, context=self._tls())

    def _tls(self) -> ssl.SSLContext:
        try:
            return tls_context(self.address.ca)
        except ConfigError:
            raise ConfigError(
                f"the file {self.address.ca!r} is not a PEM file with certificates; --ca has the "
                "authorities that the server's certificate is checked with"
            ) from None

    def _data(self, content: bytes) -> Any:
        if not content:
            return None
        try:
            return json.loads(content)
        except ValueError:
            raise ConfigError(
                f"{self.address.url} does not reply as a Penstock server does; check the address"
            ) from None


@dataclass(frozen=True)
class _Request:
    method: str
    target: str
    headers: dict[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)


def _encoded(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return json.dumps(body).encode()


def in_path(name: str) -> str:
    """Return a name as a part of a path.

    >>> in_path("a/../b")
    'a%2F..%2Fb'
    """
    return quote(name, safe="")
