"""Errors of the API (RFC 9457) as the errors that the same mistake raises without a server."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from email.message import Message
from typing import Any

from penstock.api_client.server_address import DEFAULT_URL, ServerAddress
from penstock.config.secrets import mask
from penstock.errors import (
    ConfigError,
    DefinitionError,
    GroupInUseError,
    NotFoundError,
    PenstockError,
    Problem,
    SetupError,
    TransientError,
)

_MEDIA_TYPE = "application/problem+json"
_AWAY = (429, 502, 503, 504)
_KINDS: dict[int, type[PenstockError]] = {
    404: NotFoundError,
    409: GroupInUseError,
    501: SetupError,
}


class InvalidOnServerError(DefinitionError):
    """A definition that the server refuses, with its problems."""


def problem_error(
    address: ServerAddress, status: int, headers: Message, content: bytes
) -> PenstockError:
    """Return the error of a reply that is not a success."""
    if not (headers.get("Content-Type") or "").startswith(_MEDIA_TYPE):
        return _not_penstock(address, status, headers)
    reply = _object(content)
    text = str(reply.get("detail") or f"the server replied with the status {status}")
    if status == 401:
        return ConfigError(f"{text}; to log in: penstock login --server {address.url}")
    if status == 422 and (problems := _problems(reply)):
        return InvalidOnServerError(problems, "the definition")
    if status in _AWAY:
        return TransientError(text, _seconds(headers))
    return _KINDS.get(status, PenstockError if status >= 500 else ConfigError)(text)


def connect_error(
    address: ServerAddress, status: int, headers: Message, content: bytes
) -> PenstockError:
    """Return the error of a reply of Kafka Connect's API, which has a form of its own."""
    text = _object(content).get("message")
    if not isinstance(text, str):
        return _not_penstock(address, status, headers)
    if status == 401:
        return ConfigError(f"{text}; to log in: penstock login --server {address.url}")
    if status in _AWAY:
        return TransientError(text, _seconds(headers))
    kind = NotFoundError if status == 404 else PenstockError if status >= 500 else ConfigError
    return kind(text)


def server_away(address: ServerAddress, error: Exception) -> PenstockError:
    """Return the error for a server that does not reply, with what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConfigError(
            f"the certificate of {address.url} is not trusted: {error.verify_message}; give the PEM "
            "file of its authority with --ca or PENSTOCK_SERVER_CA"
        )
    if isinstance(error, ssl.SSLError):
        return ConfigError(f"no secure connection to {address.url}: {error.reason or error}")
    reason = mask(getattr(error, "strerror", None) or str(error)) or type(error).__name__
    hint = (
        "start one with 'penstock serve', or give another with --server URL or PENSTOCK_SERVER"
        if address.url == DEFAULT_URL
        else "check the address (--server, PENSTOCK_SERVER, `server: {url: ...}` of penstock.yaml)"
    )
    return TransientError(f"no server replies at {address.url}: {reason}; {hint}")


def _not_penstock(address: ServerAddress, status: int, headers: Message) -> PenstockError:
    if status in _AWAY:
        return TransientError(
            f"{address.url} replied with the status {status}: a proxy cannot reach the server",
            _seconds(headers),
        )
    if 300 <= status < 400:
        target = mask(headers.get("Location") or "another address")
        return ConfigError(f"{address.url} redirects to {target[:200]}; give that address")
    return ConfigError(
        f"{address.url} does not reply as a Penstock server does (status {status}); check the address"
    )


def _object(content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _problems(reply: Mapping[str, Any]) -> list[Problem]:
    given = reply.get("problems")
    return [
        Problem((str(each["where"]),) if each.get("where") else (), str(each.get("message")), line)
        for each in (given if isinstance(given, list) else [])
        if isinstance(each, dict)
        for line in [each.get("line") if isinstance(each.get("line"), int) else None]
    ]


def _seconds(headers: Message) -> float:
    given = (headers.get("Retry-After") or "").strip()
    return float(given) if given.isascii() and given.isdigit() and len(given) < 6 else 1.0
