"""Errors of Connect's REST API: a status, and one text that clients show or look at."""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse, Response

from penstock.config.secrets import mask
from penstock.errors import PenstockError
from penstock.server.problems import problem

_NAMES = {
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
    415: "HTTP 415 Unsupported Media Type",
}


class ConnectError(Exception):
    """A reply that is an error, in Connect's form."""

    def __init__(self, status: int, message: str | None = None, **headers: str) -> None:
        super().__init__(message or _NAMES[status])
        self.status = status
        self.headers = headers

    def reply(self) -> Response:
        """Return the reply."""
        return error_reply(self.status, str(self), self.headers)


def error_reply(status: int, text: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error in Connect's form; secrets are masked, half of a surrogate pair is escaped."""
    shown = mask(text).encode("utf-8", "backslashreplace").decode()
    body: dict[str, Any] = {"error_code": status, "message": shown}
    return JSONResponse(body, status, headers)


def as_connect(error: PenstockError) -> Response:
    """Return an error of Penstock in Connect's form, with the status that it has elsewhere."""
    found = problem(error)
    kept = {name: value for name, value in found.headers.items() if not name.startswith("content-")}
    # 412 is of no use to clients of Connect: what comes in between, they try again at 409.
    status = 409 if found.status_code == 412 else found.status_code
    return error_reply(status, _NAMES.get(status, str(error)), kept)
