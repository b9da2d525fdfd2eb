"""Tokens of an OpenID provider: signature, issuer, audience and times are checked, then its grants."""

from __future__ import annotations

import json
import time
from threading import Lock
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from penstock.config.logs import event_logger
from penstock.control.roles import Access, Grant, Grants
from penstock.errors import ConfigError, PenstockError, TransientError
from penstock.http.http_auth import authorization
from penstock.http.http_client import Ask, HttpClient
from penstock.server.problems import RefusedRequestError
from penstock.server.settings import OidcSettings

# Signatures with a key pair only: with a shared secret, anyone who can check could sign.
_ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
_LONGEST_TOKEN = 16_000
_LARGEST_KEYS = 1_000_000
# Unknown keys make the server ask the provider at most this often.
_ASK_EVERY = 30.0
_LEEWAY = 30
_JSON = {"Accept": "application/json"}
_log = event_logger(__name__)


class OidcTokens:
    """Checks tokens against the keys that the provider publishes."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._client = HttpClient(authorization(None, None, 5.0), None, (), _LARGEST_KEYS, 5.0)
        self._keys: KeySet | None = None
        self._asked = float("-inf")
        self._lock = Lock()

    def check(self, token: str) -> Access:
        """Return the caller of a token, or refuse it with the reason."""
        if len(token) > _LONGEST_TOKEN:
            raise _refused(f"it is longer than {_LONGEST_TOKEN} characters")
        claims = self._claims(token)
        user = claims.get(self._settings.user_claim)
        if not isinstance(user, str) or not user or not user.isprintable() or len(user) > 190:
            raise _refused(f"its claim {self._settings.user_claim!r} is not the name of a user")
        return Access(f"oidc:{user}", self._grants(claims.get(self._settings.grants_claim)))

    def _claims(self, token: str) -> dict[str, Any]:
        settings = self._settings
        registry = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY,
            iss={"essential": True, "value": settings.issuer},
            aud={"essential": True, "value": settings.audience},
            exp={"essential": True},
        )
        try:
            decoded = jwt.decode(token, self._current_keys(token), algorithms=_ALGORITHMS)
            registry.validate(decoded.claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _refused(_reason(error)) from None
        return dict(decoded.claims)

    def _current_keys(self, token: str) -> KeySet:
        """Return the provider's keys; they are requested again for a token with an unknown one."""
        with self._lock:
            age = time.monotonic() - self._asked
            known = self._keys is not None and _has_key(self._keys, token)
            if age > (self._settings.keys_for if known else _ASK_EVERY):
                self._refresh()
            if self._keys is None:
                raise TransientError("the keys of the OpenID provider cannot be read", _ASK_EVERY)
            return self._keys

    def _refresh(self) -> None:
        """Request the keys; where that fails, those of before remain in use."""
        self._asked = time.monotonic()
        try:
            reply = self._client.send(Ask(self._settings.jwks_url, headers=_JSON))
            self._keys = KeySet.import_key_set(json.loads(reply.body))
        except (PenstockError, JoseError, ValueError, TypeError, KeyError) as error:
            _log.warning("the keys of the OpenID provider cannot be read", error=str(error))

    def _grants(self, claim: Any) -> Grants:
        """Return the grants of a claim; values that are none belong to other programs."""
        names = claim.split() if isinstance(claim, str) else claim
        texts = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        if (table := self._settings.grants) is not None:
            texts = [text for name in texts for text in table.get(name, ())]
        return tuple(grant for text in texts if (grant := _grant(text)) is not None)


def _grant(text: str) -> Grant | None:
    try:
        return Grant.read(text)
    except ConfigError:
        return None


def _has_key(keys: KeySet, token: str) -> bool:
    try:
        wanted = jws.extract_compact(token.encode()).headers().get("kid")
    except (JoseError, ValueError):
        return True  # it is refused anyway, without a question to the provider
    return wanted is None or any(key.kid == wanted for key in keys.keys)


def _reason(error: Exception) -> str:
    code = getattr(error, "error", "") or ""
    claim = getattr(error, "claim", None)
    return f"{code or 'it cannot be read'}{f' ({claim})' if claim else ''}"


def _refused(reason: str) -> RefusedRequestError:
    return RefusedRequestError(
        401, f"the token of the OpenID provider is not valid: {reason}", WWW_Authenticate="Bearer"
    )
