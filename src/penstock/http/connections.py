"""Connections whose reply is the one to the request: interim replies before it are passed over.

`http.client` passes over 100 only. It takes a 102 or 103 for the reply; on a connection that stays open,
the reply itself would then be that of the next request.
"""

from __future__ import annotations

from http.client import (
    SWITCHING_PROTOCOLS,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    parse_headers,
)
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler

# A server that sends more of them would let us wait forever.
_MOST_INTERIM = 100


class FinalResponse(HTTPResponse):
    """A reply that is not an interim one."""

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(_MOST_INTERIM):
            read: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if read[1] == SWITCHING_PROTOCOLS or not 100 < read[1] < 200:
                return read
            parse_headers(self.fp)
        raise HTTPException(f"the server sent more than {_MOST_INTERIM} interim replies")


class PlainConnection(HTTPConnection):
    """A connection for http."""

    response_class = FinalResponse


class SecureConnection(HTTPSConnection):
    """A connection for https."""

    response_class = FinalResponse


class PlainHandler(HTTPHandler):
    """Opens addresses with http."""

    def http_open(self, req: Any) -> HTTPResponse:
        """Send a request over a connection of its own."""
        return self.do_open(PlainConnection, req)


class SecureHandler(HTTPSHandler):
    """Opens addresses with https."""

    def https_open(self, req: Any) -> HTTPResponse:
        """Send a request over a connection of its own."""
        return self.do_open(SecureConnection, req, context=self._context)  # type: ignore[attr-defined]
