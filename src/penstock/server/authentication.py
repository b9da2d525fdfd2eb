"""Who sent a request: passwords, tokens of the store and tokens of an OpenID provider."""

from __future__ import annotations

import binascii
import hmac
import time
from base64 import b64decode
from collections.abc import Callable
from secrets import token_bytes
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING

from penstock.config.logs import event_logger
from penstock.control.roles import Access
from penstock.control.store import ControlStore
from penstock.errors import MissingExtraError, TransientError
from penstock.server.problems import RefusedRequestError
from penstock.server.settings import OidcSettings, ServerSettings

if TYPE_CHECKING:
    from penstock.server.oidc import OidcTokens

_REMEMBERED, _MOST_REMEMBERED = 15.0, 1000
_MOST_HASHING, _PATIENCE = 4, 5.0
_TOKEN = "pst_"  # noqa: S105 - what tokens of the store begin with
_log = event_logger(__name__)


def not_logged_in(text: str) -> RefusedRequestError:
    """Return the refusal of a request without a valid user."""
    return RefusedRequestError(
        401, text, WWW_Authenticate='Basic realm="penstock", charset="UTF-8"'
    )


class Authenticator:
    """Checks the header Authorization; it blocks, so it runs in a thread."""

    def __init__(self, store: ControlStore, settings: ServerSettings) -> None:
        self._store = store
        self._oidc = _oidc_tokens(settings.oidc) if settings.oidc else None
        self._recent = _RecentLogins()
        self._hashing = BoundedSemaphore(_MOST_HASHING)

    def check(self, header: str | None, address: str) -> Access:
        """Return the caller, or refuse the request."""
        scheme, _, given = (header or "").partition(" ")
        given = given.strip()
        if scheme.lower() == "basic":
            user, password = _basic(given)
            return self.log_in(user, password, address)
        if scheme.lower() == "bearer" and given:
            return self._bearer(given)
        raise not_logged_in("log in first: give a user and a password, or a token (penstock login)")

    def log_in(self, user: str, password: str, address: str) -> Access:
        """Return the user with this password.

        A password that was right some seconds ago is not hashed again, and not counted: a browser sends
        it with every request.
        """
        if (known := self._recent.get(user, password)) is not None:
            return known
        self._store.logins.begin(user, address)
        access = self._verified(user, password)
        if access is None:
            _log.warning("login failed", address=address)
            raise not_logged_in("the user or the password is wrong")
        self._store.logins.succeeded(user, address)
        self._recent.add(user, password, access)
        return access

    def _verified(self, user: str, password: str) -> Access | None:
        if not user.isprintable():
            return None
        # Hashing takes memory and time: the other requests need some of both.
        if not self._hashing.acquire(timeout=_PATIENCE):
            raise TransientError("too many people log in at the moment; try again", _PATIENCE)
        try:
            return self._store.users.log_in(user, password)
        finally:
            self._hashing.release()

    def forget(self) -> None:
        """Check every password again: users have changed."""
        self._recent.clear()

    def _bearer(self, token: str) -> Access:
        if token.startswith(_TOKEN) or self._oidc is None:
            access = self._store.tokens.check(token)
            if access is None:
                raise not_logged_in("the token is unknown, revoked or expired; log in again")
            return access
        return self._oidc.check(token)


def _oidc_tokens(settings: OidcSettings) -> OidcTokens:
    try:
        from penstock.server.oidc import OidcTokens  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise MissingExtraError("registry", "login with OIDC") from None
    return OidcTokens(settings)


def _basic(given: str) -> tuple[str, str]:
    try:
        user, colon, password = b64decode(given, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        user, colon, password = "", "", ""
    if not colon:
        raise not_logged_in("the header Authorization is not Basic with user:password in Base64")
    return user, password


class _RecentLogins:
    """Passwords that were right in the last seconds, as digests with a key of this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._key = token_bytes(32)
        self._clock = clock
        self._known: dict[bytes, tuple[float, Access]] = {}
        self._lock = Lock()

    def get(self, user: str, password: str) -> Access | None:
        at, access = self._known.get(self._digest(user, password), (-_REMEMBERED, None))
        return access if self._clock() - at < _REMEMBERED else None

    def add(self, user: str, password: str, access: Access) -> None:
        with self._lock:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[self._digest(user, password)] = (self._clock(), access)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()

    def _digest(self, user: str, password: str) -> bytes:
        text = f"{user}:{password}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, text, "sha256")
