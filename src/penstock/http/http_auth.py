"""The credentials of requests: sent to the hosts that may have them, never part of a position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import SecretStr

from penstock.config.secrets import remember_secret
from penstock.errors import TransientError
from penstock.formats.registry.http import AwayError, Tls, basic
from penstock.formats.registry.oauth import OAuth, TokenSource
from penstock.http.http_client import Ask, Authorization
from penstock.http.http_options import (
    ApiKey,
    Auth,
    BasicAuth,
    BearerAuth,
    OauthClient,
)


def authorization(auth: Auth | None, ca: str | None, timeout: float) -> Authorization:
    """Return what adds the credentials; a token is fetched when the first request needs it."""
    chosen = auth.chosen if auth else None
    if isinstance(chosen, OauthClient):
        return _Tokens(chosen, ca, timeout)
    return _Fixed(*_credentials(chosen))


def with_params(url: str, params: Mapping[str, str]) -> str:
    """Return an address with these parameters, instead of those of the same names in it.

    >>> with_params("http://a/b?x=1&y=%2F&y=3", {"x": "2 3"})
    'http://a/b?y=%2F&y=3&x=2+3'
    """
    if not params:
        return url
    split = urlsplit(url)
    pairs = [pair for pair in split.query.split("&") if pair and _name(pair) not in params]
    query = "&".join([*pairs, urlencode(params)])
    return urlunsplit(split._replace(query=query))


def without_param(url: str, name: str) -> str:
    """Return an address without a parameter.

    >>> without_param("http://a/b?key=s&y=1", "key")
    'http://a/b?y=1'
    """
    split = urlsplit(url)
    pairs = [pair for pair in split.query.split("&") if pair and _name(pair) != name]
    return urlunsplit(split._replace(query="&".join(pairs)))


def _name(pair: str) -> str:
    return next((name for name, _ in parse_qsl(pair, keep_blank_values=True)), "")


def _credentials(
    chosen: BasicAuth | BearerAuth | ApiKey | None,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and the parameters; each secret is masked in texts of this process."""
    if chosen is None:
        return {}, {}
    if isinstance(chosen, BasicAuth):
        header = basic(chosen.username, _plain(chosen.password))
        remember_secret(header.removeprefix("Basic "))
        return {"Authorization": header}, {}
    if isinstance(chosen, BearerAuth):
        return {"Authorization": f"Bearer {_plain(chosen.token)}"}, {}
    key = _plain(chosen.secret)
    if chosen.header:
        return {chosen.header: key}, {}
    return {}, {str(chosen.parameter): key}


def _plain(secret: SecretStr) -> str:
    text = secret.get_secret_value()
    remember_secret(text)
    return text


@dataclass(frozen=True)
class _Fixed:
    headers: Mapping[str, str]
    params: Mapping[str, str]

    def applied(self, ask: Ask) -> Ask:
        url = with_params(ask.url, self.params)
        return replace(ask, url=url, headers={**ask.headers, **self.headers})

    def renewed(self) -> bool:
        return False


class _Tokens:
    def __init__(self, client: OauthClient, ca: str | None, timeout: float) -> None:
        self._source = _token_source(client, ca)
        self._timeout = timeout
        self._last = SecretStr("")

    def applied(self, ask: Ask) -> Ask:
        try:
            self._last = self._source.token(self._timeout)
        except AwayError as away:
            raise TransientError(str(away), max(1.0, away.retry_after)) from away
        bearer = f"Bearer {self._last.get_secret_value()}"
        return replace(ask, headers={**ask.headers, "Authorization": bearer})

    def renewed(self) -> bool:
        self._source.forget(self._last)
        return True


@lru_cache(maxsize=64)
def _token_source(client: OauthClient, ca: str | None) -> TokenSource:
    """Return the process's one source of tokens for a client: rounds share its token."""
    oauth = OAuth(
        client.token_url, client.client_id, client.client_secret, client.scope, tls=Tls(ca)
    )
    return TokenSource(oauth)
