"""A small OpenID provider on loopback, for tests and development: names and secrets in, tokens out.

The tokens are real (JWT, RS256), and the broker checks them as it would check a large provider's.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from penstock.embedded.ports import HOST

ISSUER = "penstock-embedded"
AUDIENCE = "kafka"
LIFETIME = 3600.0
_KEY_ID = "penstock-1"


class Issuer:
    """Signs tokens with its own key."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def jwks(self) -> str:
        """Return the public half, as brokers read it (JSON Web Key Set)."""
        public = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID}
        return json.dumps({"keys": [key | {"n": _number(public.n), "e": _number(public.e)}]})

    def token(self, subject: str, lifetime: float = LIFETIME) -> str:
        """Sign a token for a user; a negative lifetime makes one that has expired."""
        now = time.time()
        # Issued before it expires, also when it has expired: the expiry alone must be the reason.
        issued = int(min(now, now + lifetime - 60))
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": issued}
        header = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        signed = f"{_json(header)}.{_json({**claims, 'exp': int(now + lifetime)})}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256())
        return f"{signed}.{_base64url(signature)}"


class TokenEndpoint:
    """Answers the client-credentials request of OAuth 2 with a token, in a thread of this process."""

    def __init__(self, issuer: Issuer, users: Mapping[str, str]) -> None:
        self.issuer = issuer
        self.users = dict(users)
        self._server = ThreadingHTTPServer((HOST, 0), partial(_Handler, self))
        Thread(target=self._server.serve_forever, name="penstock-oidc", daemon=True).start()

    @property
    def url(self) -> str:
        """Return the address for `sasl.oauthbearer.token.endpoint.url`."""
        return f"http://{HOST}:{self._server.server_port}/token"

    def close(self) -> None:
        """End the thread and release the port."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, authorization: str, form: str) -> tuple[int, dict[str, object]]:
        """Return the status and the body for one request."""
        fields = {name: values[0] for name, values in parse_qs(form).items()}
        if fields.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        name, secret = _credentials(authorization, fields)
        known = self.users.get(name, "")
        if not known or not secrets.compare_digest(known.encode(), secret.encode()):
            return 401, {"error": "invalid_client", "error_description": "unknown name or secret"}
        token = self.issuer.token(name)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": int(LIFETIME)}


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, endpoint: TokenEndpoint, *connection: Any) -> None:
        self.endpoint = endpoint
        super().__init__(*connection)

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        status, body = self.endpoint.answer(self.headers.get("Authorization", ""), form)
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the default would write every request to the terminal."""


def _credentials(authorization: str, fields: Mapping[str, str]) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return fields.get("client_id", ""), fields.get("client_secret", "")
    try:
        name, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return name, secret


def _json(content: Mapping[str, object]) -> str:
    return _base64url(json.dumps(content, separators=(",", ":")).encode())


def _number(value: int) -> str:
    return _base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
