"""Addresses, and one HTTP request with a JSON reply: for a schema registry and its token endpoint.

The standard library's client is enough, because replies are cached: redirects are not followed, so that
a password never goes to a host that was not named.
"""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64encode
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from pydantic import SecretStr

from penstock.config.secrets import mask, remember_secret
from penstock.errors import ConfigError

Credentials = tuple[str, SecretStr]
_LONGEST_REPLY = 64 * 1024 * 1024


@dataclass(frozen=True)
class Address:
    """One address of a registry, without user and password, and who asks there."""

    url: str
    user: Credentials | None = None


def addresses(
    given: str, user: Credentials | None = None, *, what: str = "registry address"
) -> list[Address]:
    """Return the addresses, each with the user and password that are in it, or else with `user`.

    What is written into one address is for that address alone.

    >>> addresses("http://a:8081/, http://b:8081")
    [Address(url='http://a:8081', user=None), Address(url='http://b:8081', user=None)]
    >>> addresses("https://app:hunter2@a")
    [Address(url='https://a', user=('app', SecretStr('**********')))]
    """
    made = []
    for split in (urlsplit(part.strip()) for part in given.split(",")):
        host = split.netloc.rpartition("@")[2]
        url = urlunsplit(split._replace(netloc=host, query="", fragment="")).rstrip("/")
        if split.scheme not in {"http", "https"} or not split.hostname:
            raise ConfigError(
                f"{what} {url!r}: allowed are http://HOST:PORT/PATH and https://..., "
                "several with commas between them"
            )
        given_user = user
        if user is None and split.username:
            given_user = credentials(unquote(split.username), unquote(split.password or ""))
        made.append(Address(url, given_user))
    return made


def credentials(username: str | None, password: SecretStr | str | None) -> Credentials | None:
    """Give both, or nothing where neither is given."""
    if username is None and password is None:
        return None
    if not username or password is None:
        raise ConfigError("the registry needs both username and password, or neither")
    secret = password if isinstance(password, SecretStr) else SecretStr(password)
    remember_secret(secret.get_secret_value())
    return username, secret


@dataclass(frozen=True)
class Tls:
    """Files for https: whom to trust (`ca`), and who we are (`certificate`, `key`), all PEM."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: SecretStr | str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext:
        """Load the files."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate:
                # An empty password, so that OpenSSL raises instead of asking at the terminal.
                context.load_cert_chain(
                    self.certificate, self.key, lambda: plain(self.key_password or "")
                )
        except (OSError, ValueError) as error:
            files = ", ".join(name for name in (self.ca, self.certificate, self.key) if name)
            raise ConfigError(
                f"cannot load the PEM files {files} for the registry: {error}"
            ) from error
        return context


class RefusedError(Exception):
    """The server replied, and the reply is no: the caller knows what that means."""

    def __init__(self, status: int, reason: str, location: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.location = location


class AwayError(Exception):
    """No reply, or one that asks to come back later."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class HttpClient:
    """Sends requests to one server or its twins; `what` names it in errors."""

    def __init__(self, what: str, tls: Tls, secure: bool) -> None:
        self._what = what
        self._opener = OpenerDirector()
        for kind in (ProxyHandler, HTTPHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
            self._opener.add_handler(kind())
        if secure:
            self._opener.add_handler(HTTPSHandler(context=tls.context()))

    def send(self, request: Request, timeout: float) -> Any:
        """Return the JSON of the reply; raise `RefusedError` for a no, `AwayError` without a reply."""
        try:
            with self._opener.open(request, timeout=timeout) as reply:
                data = reply.read(_LONGEST_REPLY)
        except HTTPError as error:
            with error:
                raise _refused(error, error.read(_LONGEST_REPLY)) from None
        except (OSError, HTTPException) as error:
            raise self._unreachable(
                error.reason if isinstance(error, URLError) else error
            ) from error
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{self._what} answers, but not with JSON ({data[:40]!r}): check the address"
            ) from error

    def _unreachable(self, reason: object) -> Exception:
        if isinstance(reason, ssl.SSLError):
            return ConfigError(
                f"no secure connection to {self._what}: {reason}; "
                "check tls=Tls(ca=..., certificate=..., key=...)"
            )
        return AwayError(mask(str(reason)) or type(reason).__name__)


def basic(user: str, password: SecretStr | str) -> str:
    """Return the header of HTTP basic authentication."""
    return "Basic " + b64encode(f"{user}:{plain(password)}".encode()).decode()


def plain(secret: SecretStr | str) -> str:
    """Return the text of a secret."""
    return secret if isinstance(secret, str) else secret.get_secret_value()


def _refused(error: HTTPError, data: bytes) -> Exception:
    reason = _reason(data)
    if error.code == 429 or error.code >= 500:
        return AwayError(f"HTTP {error.code} {reason}".strip(), _retry_after(error))
    return RefusedError(error.code, reason, mask(str(error.headers.get("Location", ""))))


def _reason(data: bytes) -> str:
    try:
        body = json.loads(data)
        # A registry's own form, or that of a token endpoint (RFC 6749, 5.2).
        return str(body.get("message") or body.get("error_description") or body["error"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return data[:500].decode(errors="replace")


def _retry_after(error: HTTPError) -> float:
    given = error.headers.get("Retry-After", "")
    try:
        if given.strip().isdigit():
            return float(given)
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0
