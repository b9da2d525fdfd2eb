"""The head of a request as the access check reads it: headers that decide occur once."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from penstock.server.problems import RefusedRequestError

Scope = MutableMapping[str, Any]
_ONCE = ("authorization", "content-length", "content-type", "host", "origin")
_PORTS = {"http": 80, "https": 443}


class RequestHead:
    """The method, path and headers of a request."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            self._headers.setdefault(name.decode("latin-1").lower(), []).append(
                value.decode("latin-1").strip()
            )
        for name in _ONCE:
            if len(self._headers.get(name, ())) > 1:
                raise RefusedRequestError(400, f"the header {name} is given more than once")

    @property
    def changes(self) -> bool:
        """Return whether the request may change something."""
        return self.method not in ("GET", "HEAD", "OPTIONS")

    def get(self, name: str) -> str | None:
        """Return a header; the last one, where several are allowed."""
        values = self._headers.get(name)
        return values[-1] if values else None


def host_and_port(netloc: str, scheme: str) -> tuple[str, int | None] | None:
    """Return the name and port of a Host header or of an origin; None if it is neither.

    >>> host_and_port("Example.com:8080", "http"), host_and_port("[::1]", "https")
    (('example.com', 8080), ('::1', 443))
    >>> host_and_port("a@b", "http") is None
    True
    """
    if not netloc or any(letter in netloc for letter in "@/\\ ,?#"):
        return None
    try:
        parts = urlsplit(f"//{netloc}")
        port = parts.port or _PORTS.get(scheme)
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    return (host, port) if host else None
