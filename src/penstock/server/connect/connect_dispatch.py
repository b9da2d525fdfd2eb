"""Finds what a request of Connect's API asks for: by the parts of its path, each decoded for itself.

A name may have any sign, also a slash that the path has encoded. A slash at the end changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from fastapi.responses import JSONResponse, PlainTextResponse, Response

from penstock.server.connect.connect_errors import ConnectError

Api = TypeVar("Api")
ROOTS = ("connectors", "connector-plugins", "admin", "health")
"""The first parts of the paths that are Connect's; `/` is, too."""
_JSON = ("*/*", "*", "application/*", "application/json")


@dataclass(frozen=True)
class Reply:
    """What is sent back; without a body it is empty."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] | None = None

    def response(self) -> Response:
        """Return it for the server."""
        if self.body is None and self.status in (202, 204):
            return Response(status_code=self.status, headers=self.headers)
        return JSONResponse(self.body, self.status, self.headers)


@dataclass(frozen=True)
class Route(Generic[Api]):
    """A method and a path, whose parts in braces are arguments of the handler.

    A route that `needs_no_access` is answered without a user, as probes call it.
    """

    method: str
    path: str
    handler: Callable[..., Reply]
    needs_no_access: bool = False

    def arguments(self, parts: list[str]) -> list[str] | None:
        """Return the arguments that a path has; None where it is another path.

        >>> Route("GET", "connectors/{name}/config", print).arguments(["connectors", "a/b", "config"])
        ['a/b']
        """
        own = self.path.split("/") if self.path else []
        if len(own) != len(parts):
            return None
        found = []
        for wanted, given in zip(own, parts, strict=True):
            if wanted.startswith("{"):
                found.append(given)
            elif wanted != given:
                return None
        return found


def path_parts(raw: bytes) -> list[str]:
    """Return the parts of a path.

    >>> path_parts(b"/connectors/a%2Fb%20c/config/")
    ['connectors', 'a/b c', 'config']
    """
    text = raw.partition(b"?")[0].decode("ascii", "replace").strip("/")
    return [unquote(part) for part in text.split("/")] if text else []


def is_connect(parts: list[str]) -> bool:
    """Return whether a path is one of Connect's API."""
    return not parts or parts[0] in ROOTS


def chosen(routes: list[Route[Api]], method: str, parts: list[str]) -> tuple[Route[Api], list[str]]:
    """Return the route of a request with its arguments; raise 404 or 405, and reply to OPTIONS."""
    found = {
        route.method: (route, arguments)
        for route in routes
        if (arguments := route.arguments(parts)) is not None
    }
    if not found:
        raise ConnectError(404)
    allowed = ", ".join(sorted({*found, "OPTIONS", *(["HEAD"] if "GET" in found else [])}))
    wanted = "GET" if method == "HEAD" else method
    if method == "OPTIONS":
        raise _OptionsError(allowed)
    if wanted not in found:
        raise ConnectError(405, Allow=allowed)
    return found[wanted]


class _OptionsError(ConnectError):
    """Not a failure: the methods of a path."""

    def __init__(self, allowed: str) -> None:
        super().__init__(200, allowed, Allow=allowed)

    def reply(self) -> Response:
        return PlainTextResponse(str(self), 200, {**self.headers, "Content-Type": "text/plain"})


def require_json(accept: str | None, content_type: str | None, *, has_body: bool) -> None:
    """Refuse a body or a type that is not JSON, and a client that takes no JSON.

    As in Connect, the type of a request counts even where it has no body.
    """
    kind = _kind(content_type or "")
    if (kind or has_body) and kind != "application/json":
        raise ConnectError(415)
    if accept and not any(_kind(each) in _JSON for each in accept.split(",")):
        raise ConnectError(406)


def _kind(given: str) -> str:
    return given.partition(";")[0].strip().lower()


def task_number(given: str) -> int:
    """Return the number of a task in a path; raise 404 where it is not a number.

    >>> task_number("0"), task_number("-1")
    (0, -1)
    """
    digits = given[1:] if given[:1] in ("-", "+") else given
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        raise ConnectError(404)
    number = int(given)
    if not -(2**31) <= number < 2**31:
        raise ConnectError(404)
    return number
