"""HTTP/1.1 requests, read strictly: what two readers could understand in two ways is refused."""

from __future__ import annotations

import re
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

HEAD_LIMIT = 32 * 1024
_MOST_HEADERS = 100
_TOKEN = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TARGET = re.compile(rb"/[\x21-\x7e]*")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e]*)?\r\n")
# Requests that have no body where their head does not announce one.
_WITHOUT_BODY = ("GET", "HEAD", "DELETE")
_VERSIONS = {b"HTTP/1.1": 1, b"HTTP/1.0": 0}


class RequestError(Exception):
    """A request that is refused: the status of the reply, the reason, and whether the connection ends."""

    def __init__(
        self, status: int, reason: str, *, ends: bool = True, headers: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reason)
        self.status = HTTPStatus(status)
        self.reason = reason
        self.ends = ends
        self.headers = headers


@dataclass(frozen=True)
class Head:
    """The first line and the headers of a request; names in small letters."""

    method: str
    target: str
    minor: int
    headers: dict[str, list[bytes]]

    def one(self, name: str) -> bytes | None:
        """Return a header that may be there once; None where it is missing."""
        found = self.headers.get(name.lower(), [])
        if len(found) > 1:
            raise RequestError(400, f"the header {name} is there {len(found)} times")
        return found[0] if found else None

    @property
    def stays(self) -> bool:
        """Return whether the client wants to send more on this connection."""
        options = b",".join(self.headers.get("connection", [])).lower()
        names = {name.strip() for name in options.split(b",")}
        return b"close" not in names if self.minor else b"keep-alive" in names

    @property
    def length(self) -> int | None:
        """Return how long the body is; None where it comes in chunks."""
        chunked = self.headers.get("transfer-encoding")
        given = self.one("Content-Length")
        if chunked is not None:
            if given is not None or not self.minor:
                raise RequestError(400, "Transfer-Encoding with Content-Length, or in HTTP/1.0")
            if [each.lower() for each in chunked] != [b"chunked"]:
                raise RequestError(501, "the only Transfer-Encoding that is understood is: chunked")
            return None
        if given is None:
            if self.method in _WITHOUT_BODY:
                return 0
            raise RequestError(411, "give Content-Length, or send the body in chunks")
        if not _LENGTH.fullmatch(given):
            raise RequestError(400, "Content-Length is not a number")
        return int(given)


async def read_head(reader: StreamReader) -> Head | None:
    """Read the head of the next request; None where the client has ended the connection."""
    try:
        data = await reader.readuntil(b"\r\n\r\n")
        while data.startswith(b"\r\n"):  # some clients send one too many after a body
            data = data[2:] or await reader.readuntil(b"\r\n\r\n")
    except LimitOverrunError:
        raise RequestError(431, f"the head of a request may have {HEAD_LIMIT} bytes") from None
    except IncompleteReadError as error:
        if error.partial.strip():
            raise RequestError(400, "the head of the request is cut off") from None
        return None
    first, *lines = data[:-4].split(b"\r\n")
    method, target, minor = _first(first)
    if len(lines) > _MOST_HEADERS:
        raise RequestError(431, f"{len(lines)} headers, and at most {_MOST_HEADERS} are allowed")
    head = Head(method, target, minor, _headers(lines))
    if head.one("Host") is None and minor:
        raise RequestError(400, "the header Host is missing")
    return head


def _first(line: bytes) -> tuple[str, str, int]:
    parts = line.split(b" ")
    if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or not _TARGET.fullmatch(parts[1]):
        raise RequestError(400, "the first line is not one of HTTP: METHOD /PATH HTTP/1.1")
    if parts[2] not in _VERSIONS:
        raise RequestError(505, "the versions that are understood are HTTP/1.1 and HTTP/1.0")
    return parts[0].decode(), parts[1].decode(), _VERSIONS[parts[2]]


def _headers(lines: list[bytes]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise RequestError(400, "a header is not of the form NAME: VALUE")
        found.setdefault(name.decode().lower(), []).append(value.strip(b" \t"))
    return found


Reserve = Callable[[int], None]
"""Called before that many bytes are read; raises where there is no room for them."""


async def read_body(reader: StreamReader, length: int | None, most: int, reserve: Reserve) -> bytes:
    """Read the body; one of more than `most` bytes is refused before it is in memory."""
    try:
        if length is not None:
            _require_size(length, most)
            reserve(length)
            return await reader.readexactly(length)
        return await _chunks(reader, most, reserve)
    except (IncompleteReadError, LimitOverrunError):
        raise RequestError(400, "the body of the request is cut off or not in chunks") from None


async def _chunks(reader: StreamReader, most: int, reserve: Reserve) -> bytes:
    # In one piece: small chunks would take many times their bytes as objects of their own.
    found = bytearray()
    size = 0
    while True:
        line = _CHUNK.fullmatch(await reader.readuntil(b"\r\n"))
        if line is None:
            raise RequestError(400, "a chunk does not begin with its size")
        count = int(line[1], 16)
        if count == 0:
            await _skip_trailers(reader)
            return bytes(found)
        size += count
        _require_size(size, most)
        reserve(count)
        data = await reader.readexactly(count + 2)
        if not data.endswith(b"\r\n"):
            raise RequestError(400, "a chunk does not end where its size says")
        found += memoryview(data)[:-2]


async def _skip_trailers(reader: StreamReader) -> None:
    for _ in range(_MOST_HEADERS):
        if await reader.readuntil(b"\r\n") == b"\r\n":
            return
    raise RequestError(431, "too many headers after the body")


def _require_size(size: int, most: int) -> None:
    if size > most:
        raise RequestError(413, f"a body of {size} bytes, and at most {most} are allowed")
