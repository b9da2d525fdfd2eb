"""The nodes of a search cluster: requests go to one of them, and to the next one when it is away."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from typing_extensions import Self

from penstock.errors import ConfigError, TransientError
from penstock.http.http_auth import authorization
from penstock.http.http_client import Ask
from penstock.http.http_options import Auth
from penstock.http.http_reply import Reply, retry_after
from penstock.http.http_session import HttpSession

NDJSON = "application/x-ndjson"
JSON = "application/json"
_AWAY = (408, 500, 502, 503, 504)


@dataclass(frozen=True)
class NodeOptions:
    """How the nodes are reached; sent to tasks."""

    urls: Sequence[str]
    auth: Auth | None
    ca: str | None
    timeout: float
    compressed: bool

    def connect(self) -> SearchNodes:
        """Return the nodes; connections are made when they are needed."""
        return SearchNodes(self)


class SearchNodes:
    """Connections to the nodes; a context manager, for one thread."""

    def __init__(self, options: NodeOptions) -> None:
        self._options = options
        self._session = HttpSession(
            authorization(options.auth, options.ca, options.timeout), options.ca, options.timeout
        )
        # Tasks begin at different nodes.
        self._at = os.getpid() % len(options.urls)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def bulk(self, path: str, body: memoryview) -> Reply:
        """Send a bulk request; return the reply of a node that is not away, whatever it says."""
        return self._sent("POST", path, body, NDJSON)

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """Return the status and the JSON of a reply."""
        body = None if document is None else memoryview(msgspec.json.encode(document))
        reply = self._sent(method, path, body, JSON)
        require_rights(reply)
        try:
            return reply.status, msgspec.json.decode(reply.body or b"{}")
        except msgspec.MsgspecError:
            raise ConfigError(f"{reply} is not a search server; check 'url'") from None

    def require_server(self) -> None:
        """Raise where something else than a search server replies; a user may have no right to ask."""
        reply = self._sent("GET", "/", None, JSON)
        if reply.status == 401:
            require_rights(reply)
        if reply.status == 200 and b'"version"' not in reply.body:
            raise ConfigError(f"{reply} is not a search server; check 'url'")

    def _sent(self, method: str, path: str, body: memoryview | None, kind: str) -> Reply:
        headers = {"Content-Type": kind, "Accept": JSON}
        if body is not None and self._options.compressed:
            body = memoryview(gzip.compress(body, 1))
            headers["Content-Encoding"] = "gzip"
        away: TransientError | None = None
        for _ in self._options.urls:
            url = self._options.urls[self._at].rstrip("/") + path
            try:
                reply = self._session.send(Ask(url, method, headers, body))  # type: ignore[arg-type]
                if reply.status not in _AWAY:
                    return reply
                away = TransientError(f"{reply} is away or busy", retry_after(reply))
            except TransientError as error:
                away = error
            self._at = (self._at + 1) % len(self._options.urls)
        assert away is not None  # noqa: S101 - there is one address at least
        raise away


def require_rights(reply: Reply) -> None:
    """Raise where the server refuses who we are, or what we may do."""
    if reply.status == 401:
        raise ConfigError(f"{reply} refuses the credentials; check 'auth'")
    if reply.status == 403:
        raise ConfigError(f"{reply}: this user may not do that; give it the right, or check 'auth'")
