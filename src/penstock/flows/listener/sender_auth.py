"""Who may send: a token, a user, or a signature of the body; all compared in constant time."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import partial

from penstock.config.secrets import remember_secret
from penstock.flows.definition.triggers import HmacAuth, HttpTriggerAuth
from penstock.imports.http_listener.http_requests import Head, RequestError
from penstock.imports.http_listener.listener_options import ListenerAuth
from penstock.imports.http_listener.sender_check import Check, check_of

BodyCheck = Callable[[Head, bytes], None]


def head_check(auth: HttpTriggerAuth | None) -> Check:
    """Return what raises for a head without the right credentials, before its body is read."""
    if auth is None:
        return check_of(None)
    if auth.hmac is not None:
        header = auth.hmac.header
        return partial(_require_signature, header)
    return check_of(
        ListenerAuth(**({"basic": auth.basic} if auth.basic else {"bearer": auth.token}))
    )


def body_check(auth: HttpTriggerAuth | None) -> BodyCheck:
    """Return what raises for a body that is not the one that was signed."""
    if auth is None or auth.hmac is None:
        return lambda _head, _body: None
    return _signed_by(auth.hmac)


def _signed_by(options: HmacAuth) -> BodyCheck:
    secret = options.secret.get_secret_value()
    remember_secret(secret)
    key, algorithm, prefix = secret.encode(), options.algorithm, f"{options.algorithm}=".encode()

    def check(head: Head, body: bytes) -> None:
        given = (head.one(options.header) or b"").removeprefix(prefix).lower()
        wanted = hmac.new(key, body, algorithm).hexdigest().encode()
        if not hmac.compare_digest(given, wanted):
            raise RequestError(401, "the signature is not that of the body", ends=False)

    return check


def _require_signature(header: str, head: Head) -> None:
    if not head.one(header):
        raise RequestError(401, f"the header {header} with the signature of the body is missing")
