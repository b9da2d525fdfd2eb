"""Who may send: credentials are compared in constant time, so that replies do not betray them."""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest
from urllib.parse import parse_qs

from pydantic import SecretStr

from penstock.config.secrets import remember_secret
from penstock.formats.registry.http import basic
from penstock.imports.http_listener.http_requests import Head, RequestError
from penstock.imports.http_listener.listener_options import ListenerAuth

Check = Callable[[Head], None]
_MOST_PARAMETERS = 100


def check_of(auth: ListenerAuth | None) -> Check:
    """Return what raises for a request without the right credentials."""
    if auth is None:
        return lambda _head: None
    if auth.basic:
        header = basic(auth.basic.username, _plain(auth.basic.password))
        remember_secret(header.removeprefix("Basic "))
        return _header_is("Authorization", header, "Basic")
    if auth.bearer:
        return _header_is("Authorization", f"Bearer {_plain(auth.bearer.token)}", "Bearer")
    key = auth.chosen
    if key.header:
        return _header_is(key.header, _plain(key.secret), "ApiKey")
    return _parameter_is(str(key.parameter), _plain(key.secret))


def _header_is(name: str, wanted: str, scheme: str) -> Check:
    def check(head: Head) -> None:
        given = head.one(name) or b""
        word, blank, rest = given.partition(b" ")
        if blank and name == "Authorization":
            given = word.capitalize() + b" " + rest.strip(b" ")
        _require(given, wanted.encode(), scheme)

    return check


def _parameter_is(name: str, wanted: str) -> Check:
    def check(head: Head) -> None:
        try:
            fields = parse_qs(head.target.partition("?")[2], max_num_fields=_MOST_PARAMETERS)
        except ValueError:
            raise RequestError(
                400, f"at most {_MOST_PARAMETERS} parameters are allowed in the address"
            ) from None
        given = fields.get(name, [""])
        _require(given[0].encode(), wanted.encode(), "ApiKey")

    return check


def _require(given: bytes, wanted: bytes, scheme: str) -> None:
    if not compare_digest(given, wanted):
        header = f'WWW-Authenticate: {scheme} realm="penstock"'
        raise RequestError(401, "the credentials are missing or wrong", headers=(header,))


def _plain(secret: SecretStr) -> str:
    text = secret.get_secret_value()
    remember_secret(text)
    return text
