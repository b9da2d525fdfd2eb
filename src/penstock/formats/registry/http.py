"""One question to a schema registry: over HTTP, within a time, tried again while it is away.

The standard library's client is enough, because answers are kept: redirects are not followed, so that
a password never goes to a host that nobody named.
"""

from __future__ import annotations

import itertools
import json
import random
import ssl
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
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

from penstock.config.secrets import mask
from penstock.errors import ConfigError, TransientError

ATTEMPTS = 4
FIRST_PAUSE = 0.1
LONGEST_ANSWER = 64 * 1024 * 1024
_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True)
class Tls:
    """Files for https: whom to trust (`ca`), and who we are (`certificate`, `key`), all PEM."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: SecretStr | str | None = None

    def context(self) -> ssl.SSLContext:
        """Load the files."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key, lambda: self._password)
        except (OSError, ValueError) as error:
            files = ", ".join(name for name in (self.ca, self.certificate, self.key) if name)
            raise ConfigError(
                f"cannot load the PEM files {files} for the registry: {error}"
            ) from error
        return context

    @property
    def _password(self) -> str:
        # An empty answer, so that OpenSSL raises instead of asking at the terminal.
        given = self.key_password or ""
        return given if isinstance(given, str) else given.get_secret_value()

    def __repr__(self) -> str:
        return f"Tls(ca={self.ca!r}, certificate={self.certificate!r}, key={self.key!r})"


class RefusedError(Exception):
    """The registry answered, and the answer is no: the caller knows what that means."""

    def __init__(self, status: int, code: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.code = code
        self.reason = reason


class _AwayError(Exception):
    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Transport:
    """Asks the registry at any of its addresses. `timeout` is for all tries of a question together."""

    def __init__(
        self,
        urls: Sequence[str],
        credentials: tuple[str, SecretStr] | None,
        tls: Tls,
        timeout: float,
    ) -> None:
        self.urls = urls
        self.timeout = timeout
        self._credentials = credentials
        self._opener = _opener(urls, tls)

    @property
    def shown(self) -> str:
        """The addresses, for messages."""
        return ", ".join(self.urls)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Give the answer; raise `RefusedError` for a no, `TransientError` when nobody answers."""
        deadline = time.monotonic() + self.timeout
        for attempt in itertools.count(1):
            try:
                return self._ask_each(method, path, body, deadline)
            except _AwayError as away:
                pause = max(away.retry_after, _pause(attempt))
                if attempt == ATTEMPTS or time.monotonic() + pause >= deadline:
                    raise self._gone(away, pause) from away
                time.sleep(pause)
        raise AssertionError

    def _ask_each(self, method: str, path: str, body: Any, deadline: float) -> Any:
        last = _AwayError("no time left")
        for url in self.urls:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                return self._once(self._request(url + path, method, body), left)
            except _AwayError as away:
                last = away
        raise last

    def _request(self, url: str, method: str, body: Any) -> Request:
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data, {"Accept": f"{_TYPE}, application/json"}, method=method)  # noqa: S310 - checked to be http
        if data is not None:
            request.add_header("Content-Type", _TYPE)
        if self._credentials:
            user, password = self._credentials
            pair = b64encode(f"{user}:{password.get_secret_value()}".encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {pair}")
        return request

    def _once(self, request: Request, left: float) -> Any:
        try:
            with self._opener.open(request, timeout=left) as answer:
                return self._parsed(answer.read(LONGEST_ANSWER))
        except HTTPError as error:
            with error:
                raise self._no(error, error.read(LONGEST_ANSWER)) from None
        except URLError as error:
            raise self._unreachable(error.reason) from error
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from error

    def _parsed(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except ValueError as error:
            raise ConfigError(
                f"{self.shown} answers, but not with JSON ({data[:40]!r}): "
                "is it the address of a schema registry's API?"
            ) from error

    def _unreachable(self, reason: object) -> Exception:
        if isinstance(reason, ssl.SSLError):
            return ConfigError(
                f"no secure connection to the registry at {self.shown}: {reason}; "
                "check tls=Tls(ca=..., certificate=..., key=...)"
            )
        return _AwayError(mask(str(reason)) or type(reason).__name__)

    def _no(self, error: HTTPError, data: bytes) -> Exception:
        code, reason = _said(data)
        if error.code == 429 or error.code >= 500:
            return _AwayError(f"HTTP {error.code} {reason}".strip(), _retry_after(error))
        if error.code in {401, 403}:
            return ConfigError(
                f"the registry at {self.shown} refuses {self._who()} (HTTP {error.code}): "
                "check username, password and what this user may do"
            )
        if error.code < 400:
            return ConfigError(
                f"the registry at {self.shown} has moved to {error.headers.get('Location')}: "
                "give that address"
            )
        return RefusedError(error.code, code, reason)

    def _who(self) -> str:
        return f"user {self._credentials[0]!r}" if self._credentials else "a caller without a name"

    def _gone(self, away: _AwayError, pause: float) -> TransientError:
        return TransientError(
            f"the registry at {self.shown} is away or busy: {away}; "
            "check that it runs and can be reached from here, or try again later",
            retry_after=max(1.0, pause),
        )


def _opener(urls: Sequence[str], tls: Tls) -> OpenerDirector:
    opener = OpenerDirector()
    for handler in (ProxyHandler(), HTTPHandler(), HTTPDefaultErrorHandler(), HTTPErrorProcessor()):
        opener.add_handler(handler)
    if any(url.startswith("https:") for url in urls):
        opener.add_handler(HTTPSHandler(context=tls.context()))
    return opener


def _pause(attempt: int) -> float:
    # Spread, so that many clients do not come back at the same moment.
    return FIRST_PAUSE * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311


def _retry_after(error: HTTPError) -> float:
    given = error.headers.get("Retry-After", "")
    try:
        return float(given) if given.strip().isdigit() else _seconds_until(given)
    except (TypeError, ValueError):
        return 0.0


def _seconds_until(date: str) -> float:
    return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())


def _said(data: bytes) -> tuple[int, str]:
    try:
        body = json.loads(data)
        return int(body["error_code"]), str(body["message"])
    except (ValueError, KeyError, TypeError):
        return 0, data[:500].decode(errors="replace")
