"""Errors of the API in one form (RFC 9457), with the text that the command line prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.responses import JSONResponse

from penstock.config.secrets import mask
from penstock.control.store.deployments import ChangedError
from penstock.control.store.login_limit import TooManyLoginsError
from penstock.errors import (
    ConfigError,
    DefinitionError,
    GroupInUseError,
    MissingExtraError,
    NotFoundError,
    PenstockError,
    Problem,
    TransientError,
)

MEDIA_TYPE = "application/problem+json"
INTERNAL = "the server failed on this request; its log has the reason"


class RefusedRequestError(ConfigError):
    """A request that is not answered, with its status: 401, 403, 413, ..."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


# The first one that fits counts.
_STATUS: tuple[tuple[type[PenstockError], int, str], ...] = (
    (NotFoundError, 404, "Not found"),
    (ChangedError, 412, "Changed since it was read"),
    (DefinitionError, 422, "Invalid definition"),
    (TooManyLoginsError, 429, "Too many failed logins"),
    (GroupInUseError, 409, "In use"),
    (MissingExtraError, 501, "Not installed"),
    (ConfigError, 400, "Invalid request"),
    (TransientError, 503, "Unavailable"),
)


def problem(error: PenstockError) -> JSONResponse:
    """Return the reply for an error.

    >>> reply = problem(NotFoundError("there is no deployment 'orders'; there are none"))
    >>> reply.status_code, reply.body
    (404, b'{"title":"Not found","status":404,"detail":"there is no deployment ...
    """
    if isinstance(error, RefusedRequestError):
        return _reply(error.status, "Refused", error, dict(error.headers))
    for kind, status, title in _STATUS:
        if isinstance(error, kind):
            retry = getattr(error, "retry_after", 0.0)
            return _reply(status, title, error, {"Retry-After": f"{retry:.0f}"} if retry else {})
    return _reply(500, "Failed", error, {})


def internal_error() -> JSONResponse:
    """Return the reply for an error that no one expected: the log has the details."""
    content = {"title": "Internal error", "status": 500, "detail": INTERNAL}
    return JSONResponse(content, 500, media_type=MEDIA_TYPE)


def http_problem(status: int, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the reply for a status of the framework, as 404 for an unknown path."""
    content = {"title": "Refused", "status": status, "detail": _text(text)}
    return JSONResponse(content, status, dict(headers or {}), media_type=MEDIA_TYPE)


def invalid_request(problems: Sequence[Problem]) -> JSONResponse:
    """Return the reply for parameters or a body that do not fit; values are not repeated in it."""
    text = "; ".join(str(each) for each in problems)
    content = {"title": "Invalid request", "status": 400, "detail": _text(text)}
    return JSONResponse(
        {**content, "problems": shown_problems(problems)}, 400, media_type=MEDIA_TYPE
    )


def shown_problems(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """Return problems as JSON has them.

    >>> shown_problems([Problem(("sink",), "is required", 3)])
    [{'where': 'sink', 'message': 'is required', 'line': 3}]
    """
    return [
        {"where": _text(each.where), "message": _text(each.message), "line": each.line}
        for each in problems
    ]


def _reply(status: int, title: str, error: PenstockError, headers: dict[str, str]) -> JSONResponse:
    content: dict[str, Any] = {"title": title, "status": status, "detail": _text(str(error))}
    if isinstance(error, DefinitionError):
        content["problems"] = shown_problems(error.problems)
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def _text(text: str) -> str:
    """Return a text without secrets that can be sent: half of a surrogate pair is escaped."""
    return mask(text).encode("utf-8", "backslashreplace").decode()
