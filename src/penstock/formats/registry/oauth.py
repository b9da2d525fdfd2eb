"""Tokens for a schema registry: OAuth 2.0 client credentials, fetched once, renewed before they end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Any
from urllib.parse import quote_plus, urlencode
from urllib.request import Request

from pydantic import SecretStr

from penstock.config.secrets import mask, remember_secret
from penstock.errors import ConfigError
from penstock.formats.registry.http import (
    AwayError,
    HttpClient,
    RefusedError,
    Tls,
    addresses,
    basic,
    plain,
)

# A token is used for this part of its time: clocks differ, and requests take a moment.
_USED_FOR = 0.8
_DEFAULT_LIFE = 300.0


@dataclass(frozen=True)
class OAuth:
    """Where a client gets its tokens (`token_url`), and its identity there.

    `headers` are sent to the registry with each token, as Confluent Cloud's `target-sr-cluster`. `tls` is
    for the token endpoint alone; it is sent no secret of the registry's.

    >>> OAuth("https://login.example/token", "app", "hunter2", scope="schemas")
    OAuth('https://login.example/token', 'app', scope='schemas')
    """

    token_url: str
    client_id: str
    client_secret: SecretStr | str
    scope: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: Tls = Tls()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        (found, *more) = addresses(self.token_url, what="token address")
        if found.user or more:
            raise ConfigError(
                f"token address {found.url!r}: give one address, and the client with client_id and "
                "client_secret instead of in it"
            )
        if not self.client_id or not plain(self.client_secret):
            raise ConfigError("OAuth needs both client_id and client_secret")
        secret = plain(self.client_secret)
        remember_secret(secret)
        object.__setattr__(self, "client_secret", SecretStr(secret))

    def __repr__(self) -> str:
        scope = f", scope={self.scope!r}" if self.scope else ""
        return f"OAuth({self.token_url!r}, {self.client_id!r}{scope})"


class TokenSource:
    """The token of one client. Safe to share between threads: one of them asks, the others wait."""

    def __init__(self, oauth: OAuth) -> None:
        self.headers = oauth.headers
        self._oauth = oauth
        self._what = f"the token endpoint {oauth.token_url}"
        self._http = HttpClient(self._what, oauth.tls, oauth.token_url.startswith("https:"))
        self._lock = Lock()
        self._token = SecretStr("")
        self._until = 0.0

    def token(self, timeout: float) -> SecretStr:
        """Return a token that is still good, from the endpoint when the last one is not."""
        with self._lock:
            if monotonic() >= self._until:
                asked = monotonic()
                self._token, life = self._read(self._ask(timeout))
                self._until = asked + _USED_FOR * life
            return self._token

    def forget(self, token: SecretStr) -> None:
        """Ask for another token next time: the registry refuses this one."""
        with self._lock:
            if token is self._token:
                self._until = 0.0

    def _ask(self, timeout: float) -> Any:
        oauth = self._oauth
        form = {"grant_type": "client_credentials"} | (
            {"scope": oauth.scope} if oauth.scope else {}
        )
        request = Request(oauth.token_url, urlencode(form).encode(), method="POST")  # noqa: S310 - checked
        request.add_header("Accept", "application/json")
        # RFC 6749, 2.3.1: both are encoded before they become basic authentication.
        who = basic(quote_plus(oauth.client_id), quote_plus(plain(oauth.client_secret)))
        request.add_unredirected_header("Authorization", who)
        try:
            return self._http.send(request, timeout)
        except AwayError as away:
            raise AwayError(f"{self._what}: {away}", away.retry_after) from away
        except RefusedError as no:
            raise ConfigError(
                f"{self._what} refuses client {oauth.client_id!r} (HTTP {no.status}): "
                f"{mask(no.reason or no.location)}; check token_url, client_id, client_secret and scope"
            ) from None

    def _read(self, body: Any) -> tuple[SecretStr, float]:
        try:
            token, life = str(body["access_token"]), float(body.get("expires_in") or _DEFAULT_LIFE)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ConfigError(
                f"{self._what} answers without an access token: check token_url"
            ) from None
        if not token.isascii() or not token.isprintable():
            raise ConfigError(
                f"{self._what} answers with an access token that cannot be sent in a header, because it "
                "has a control character or a letter that is not ASCII: check token_url"
            )
        remember_secret(token)
        return SecretStr(token), life
