"""One request and its reply: bounded in size and time; only known hosts get the credentials."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path
from typing import Protocol
from urllib.error import URLError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request

from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.errors import ConfigError, PenstockError, TerminalError, TransientError
from penstock.http.connections import PlainHandler, SecureHandler
from penstock.http.http_reply import Reply, refusal, shown
from penstock.http.reply_limit import ReplyLimit

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
# The letters that an address may have as they are; `%` is there for what is encoded already.
_OF_ADDRESSES = "%/:=&?~+!$,;'@()*[]-._"


@dataclass(frozen=True)
class Ask:
    """A request."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = ()  # type: ignore[assignment]
    body: bytes | None = None


class Authorization(Protocol):
    """What makes a request one of a known client."""

    def applied(self, ask: Ask) -> Ask:
        """Return the request with the credentials."""

    def renewed(self) -> bool:
        """Forget credentials that were refused; return whether there can be others."""


class HttpClient:
    """Sends requests. `hosts` may get them, in addition to the host that is asked."""

    def __init__(
        self, auth: Authorization, ca: str | None, hosts: tuple[str, ...], most: int, timeout: float
    ) -> None:
        self._auth = auth
        self._hosts = hosts
        self._limit = ReplyLimit(most, timeout)
        self._timeout = timeout
        self._opener = OpenerDirector()
        for handler in (ProxyHandler(), PlainHandler(), SecureHandler(context=tls_context(ca))):
            self._opener.add_handler(handler)

    def send(self, ask: Ask, accepted: tuple[int, ...] = ()) -> Reply:
        """Return the reply, 304 and `accepted` included; raise for every status that says no."""
        reply = self._followed(ask)
        if reply.status == 401 and self._auth.renewed():
            reply = self._followed(ask)
        if reply.status in (304, *accepted) or 200 <= reply.status < 300:
            return reply
        raise refusal(reply)

    def require_allowed(self, source: str, target: str, what: str) -> None:
        """Raise where a server sends us to a host that must not get the credentials."""
        try:
            if may_follow(source, target, self._hosts):
                return
        except ValueError as error:
            raise _no_address(source, target, what, error) from None
        to = urlsplit(target)
        host = printable(to.netloc.rpartition("@")[2])
        raise TerminalError(
            f"{what} of {shown(source)} leads to {to.scheme}://{host}, which is not followed, "
            "because the request and its credentials would go there; allowed: the same host (https where "
            f"it was https), and those of 'allow_hosts' ({', '.join(self._hosts) or 'none'})"
        )

    def _followed(self, ask: Ask) -> Reply:
        for _ in range(_MOST_REDIRECTS + 1):
            reply = self._sent(ask)
            if reply.status not in _REDIRECTS:
                return reply
            target = joined(ask.url, reply.headers.get("Location", ""), "a redirect")
            self.require_allowed(ask.url, target, "a redirect")
            ask = _redirected(ask, reply.status, target)
        raise TerminalError(
            f"{shown(ask.url)} redirects more than {_MOST_REDIRECTS} times: check the address"
        )

    def _sent(self, ask: Ask) -> Reply:
        # Replies and errors have the address without the credentials.
        full = self._auth.applied(ask)
        request = Request(full.url, full.body, dict(full.headers), method=full.method)  # noqa: S310 - checked
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                body = self._limit.body(response, ask.url)
                return Reply(ask.url, response.status, response.headers, body)
        except (OSError, HTTPException) as error:
            raise unreachable(ask.url, error) from error


def encoded(url: str) -> str:
    """Return an address of a reply with every letter encoded that an address cannot have.

    >>> encoded("/a b?x=%20ä")
    '/a%20b?x=%20%C3%A4'
    """
    return quote(url.strip().partition("#")[0], safe=_OF_ADDRESSES)


def joined(source: str, given: str, what: str) -> str:
    """Return the address to which a reply leads; raise where it is none.

    >>> joined("http://a/b?x=1", "?x=2", "the next link")
    'http://a/b?x=2'
    """
    try:
        return urljoin(source, encoded(given))
    except ValueError as error:
        raise _no_address(source, given, what, error) from None


def _no_address(source: str, given: str, what: str, error: ValueError) -> TerminalError:
    return TerminalError(
        f"{what} of {shown(source)} leads to {shown(given)!r}, which is not an address: {error}; "
        "allowed: http://HOST/PATH and https://HOST/PATH"
    )


def may_follow(source: str, target: str, hosts: tuple[str, ...]) -> bool:
    """Return whether the same credentials may go to another address.

    >>> may_follow("http://a/x", "https://a/y", ()), may_follow("https://a/x", "http://a/y", ())
    (True, False)
    >>> may_follow("https://a/", "https://b/", ()), may_follow("https://a/", "https://b/", ("b",))
    (False, True)
    """
    here, there = urlsplit(source), urlsplit(target)
    if there.scheme not in ("http", "https") or (here.scheme, there.scheme) == ("https", "http"):
        return False
    if there.username is not None:
        return False
    if there.hostname in hosts or there.netloc.lower() in hosts:
        return True
    upgraded = here.scheme != there.scheme and there.port in (None, 443)
    return here.hostname == there.hostname and (upgraded or _port(source) == _port(target))


def tls_context(ca: str | None) -> ssl.SSLContext:
    """Return what verifies servers: with these authorities, or those of the machine."""
    try:
        return _tls_context(ca, Path(ca).stat().st_mtime if ca else 0.0)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the file {ca!r} cannot be loaded ({error}); 'ca' is a PEM file with the certificates of "
            "the authorities to trust, on every machine that runs tasks"
        ) from error


@lru_cache(maxsize=8)
def _tls_context(ca: str | None, _changed: float) -> ssl.SSLContext:
    """Load the authorities, which takes longer than a request; again when their file has changed."""
    return ssl.create_default_context(cafile=ca)


def _port(url: str) -> int:
    split = urlsplit(url)
    return split.port or (443 if split.scheme == "https" else 80)


def _redirected(ask: Ask, status: int, target: str) -> Ask:
    if status in (307, 308) or ask.method == "GET":
        return replace(ask, url=target)
    if status == 303:
        return replace(ask, url=target, method="GET", body=None)
    raise TerminalError(
        f"{shown(ask.url)} redirects a {ask.method} with HTTP {status}, which would become a GET; "
        f"give the address {shown(target)} in 'url'"
    )


def unreachable(url: str, error: Exception) -> PenstockError:
    """Return the error for a server that does not reply."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return ConfigError(
            f"no secure connection to {shown(url)}: {reason}; give the PEM file of its authority in 'ca'"
        )
    text = mask(str(reason)) or type(reason).__name__
    return TransientError(f"{shown(url)} cannot be reached: {text}; it is tried again")
