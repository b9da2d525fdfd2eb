"""The body of a reply, bounded in size and time, uncompressed."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from http.client import HTTPResponse

from penstock.config.printable import printable
from penstock.errors import PenstockError, TerminalError
from penstock.http.http_reply import shown

_CHUNK = 1 << 16


@dataclass(frozen=True)
class ReplyLimit:
    """The most bytes of a reply, and the time that a body may take from when its headers were read."""

    most: int
    timeout: float

    def body(self, response: HTTPResponse, url: str) -> bytes:
        """Return the body of a reply, uncompressed."""
        return self._plain(response, url, self._read(response, url))

    def _read(self, response: HTTPResponse, url: str) -> bytes:
        """Return the body; nothing is buffered beyond the limit, and a slow server does not hold us."""
        until = time.monotonic() + self.timeout
        expected = response.length
        if (expected or 0) > self.most:
            raise self._too_large(url)
        parts, size = [], 0
        while size != expected and (part := response.read1(_CHUNK)):
            parts.append(part)
            size += len(part)
            if size > self.most:
                raise self._too_large(url)
            if time.monotonic() > until:
                raise TimeoutError(f"the body is not complete after {self.timeout:g} s")
        if expected is not None and size < expected:
            raise TimeoutError(f"the body ends after {size} of {expected} bytes")
        return b"".join(parts)

    def _plain(self, response: HTTPResponse, url: str, body: bytes) -> bytes:
        """Return the body, uncompressed where the server compresses without being asked to."""
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding in ("identity", "") or not body:
            return body
        if coding not in ("gzip", "x-gzip"):
            raise TerminalError(
                f"the reply of {shown(url)} has the encoding {printable(coding)!r}, which was not asked "
                "for; allowed: gzip or none"
            )
        unzip = zlib.decompressobj(wbits=31)
        try:
            plain = unzip.decompress(body, self.most + 1)
        except zlib.error as error:
            raise TerminalError(f"the reply of {shown(url)} is not gzip: {error}") from None
        if len(plain) > self.most:
            raise self._too_large(url)
        if not unzip.eof:
            raise TimeoutError("the compressed body is not complete")
        return plain

    def _too_large(self, url: str) -> PenstockError:
        return TerminalError(
            f"the reply of {shown(url)} is larger than {self.most} bytes; let the API give smaller "
            "pages, or raise 'max_bytes'"
        )


class ReplyStart(ReplyLimit):
    """The first bytes of a reply, as they came, for callers that only show them."""

    def body(self, response: HTTPResponse, _url: str) -> bytes:
        """Return how the body begins; the rest is not read."""
        until = time.monotonic() + self.timeout
        parts, size = [], 0
        while size <= self.most and response.length != 0 and (part := response.read1(_CHUNK)):
            parts.append(part)
            size += len(part)
            if time.monotonic() > until:
                break
        return b"".join(parts)[: self.most]
