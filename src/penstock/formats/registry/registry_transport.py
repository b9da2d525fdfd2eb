"""Requests to a schema registry at any of its addresses, within a time, tried again while it is away."""

from __future__ import annotations

import json
from collections.abc import Sequence
from time import monotonic
from typing import Any
from urllib.request import Request

from penstock.errors import ConfigError, TransientError
from penstock.formats.registry.http import Address, AwayError, HttpClient, RefusedError, Tls, basic
from penstock.formats.registry.oauth import OAuth, TokenSource
from penstock.retry import backoff, retry

_TRIES = 4
_FIRST_PAUSE = 0.1
_TYPE = "application/vnd.schemaregistry.v1+json"


class Transport:
    """Sends a request to the addresses in turn. `timeout` is for all tries of a request together."""

    def __init__(
        self, addresses: Sequence[Address], tls: Tls, timeout: float, oauth: OAuth | None = None
    ) -> None:
        self.addresses = addresses
        self.timeout = timeout
        self._oauth = oauth
        self._tokens = TokenSource(oauth) if oauth else None
        secure = any(address.url.startswith("https:") for address in addresses)
        self._http = HttpClient(f"the registry at {self.shown}", tls, secure)

    @property
    def shown(self) -> str:
        """Return the addresses, for messages."""
        return ", ".join(address.url for address in self.addresses)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the reply; raise `RefusedError` for a no, `TransientError` without a reply."""
        pauses = backoff(_FIRST_PAUSE, _TRIES)
        deadline = monotonic() + self.timeout

        def again(error: Exception) -> float | None:
            if not isinstance(error, AwayError) or (pause := next(pauses, None)) is None:
                return None
            return max(pause, error.retry_after)

        try:
            return retry(
                lambda: self._ask_each(method, path, body, deadline), again, within=self.timeout
            )
        except AwayError as away:
            raise TransientError(
                f"the registry at {self.shown} is away or busy: {away}; "
                "check that it runs and can be reached from here, or try again later",
                retry_after=max(1.0, away.retry_after),
            ) from away

    def _ask_each(self, method: str, path: str, body: Any, deadline: float) -> Any:
        last = AwayError("no time left")
        for address in self.addresses:
            if monotonic() >= deadline:
                break
            try:
                request = _request(address, path, method, body)
                return self._ask_at(address, request, deadline)
            except AwayError as away:
                last = away
        raise last

    def _ask_at(self, address: Address, request: Request, deadline: float) -> Any:
        try:
            if self._tokens is None:
                return self._http.send(request, _left(deadline))
            return self._ask_with_token(self._tokens, request, deadline)
        except RefusedError as no:
            if no.status in {401, 403}:
                raise self._not_allowed(address, no.status) from None
            if no.status < 400:
                raise ConfigError(
                    f"the registry at {address.url} has moved to {no.location:.300}: give that address"
                ) from None
            raise

    def _ask_with_token(self, tokens: TokenSource, request: Request, deadline: float) -> Any:
        """Send the request with a token; a token that was withdrawn before its end is fetched again."""
        for is_last in (False, True):
            token = tokens.token(_left(deadline))
            request.add_unredirected_header("Authorization", f"Bearer {token.get_secret_value()}")
            for name, value in tokens.headers.items():
                request.add_unredirected_header(name, value)
            try:
                return self._http.send(request, _left(deadline))
            except RefusedError as no:
                if no.status != 401 or is_last:
                    raise
                tokens.forget(token)
        raise AssertionError

    def _not_allowed(self, address: Address, status: int) -> ConfigError:
        who, check = "a caller without a name", "username, password"
        if self._oauth:
            who, check = f"client {self._oauth.client_id!r}", "client_id, scope, headers"
        elif address.user:
            who = f"user {address.user[0]!r}"
        return ConfigError(
            f"the registry at {address.url} refuses {who} (HTTP {status}): "
            f"check {check} and what it may do there"
        )


def _request(address: Address, path: str, method: str, body: Any) -> Request:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Accept": f"{_TYPE}, application/json"}
    request = Request(address.url + path, data, headers, method=method)  # noqa: S310 - checked to be http
    if data is not None:
        request.add_header("Content-Type", _TYPE)
    if address.user:
        request.add_unredirected_header("Authorization", basic(*address.user))
    return request


def _left(deadline: float) -> float:
    return max(0.001, deadline - monotonic())
