"""Tokens of an OpenID provider: a real server publishes its keys."""

from __future__ import annotations

import hmac
import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from starlette.testclient import TestClient
from tests.unit.server.conftest import Api

from penstock.server.settings import OidcSettings

RSA, EC = (
    RSAKey.generate_key(2048, {"kid": "rsa"}),
    ECKey.generate_key("P-256", {"kid": "ec"}),
)
OTHER = RSAKey.generate_key(2048, {"kid": "rsa"})
ISSUER = "https://id.example"


class Provider:
    """Publishes keys at an address of this machine."""

    def __init__(self) -> None:
        self.keys: Any = KeySet([RSA]).as_dict(private=False)
        self.requests = 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.requests += 1
                body = json.dumps(provider.keys).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"


@pytest.fixture
def provider() -> Iterator[Provider]:
    started = Provider()
    thread = threading.Thread(target=started.server.serve_forever, args=(0.05,))
    thread.start()
    yield started
    started.server.shutdown()
    thread.join()
    started.server.server_close()


def token(key: Any = RSA, algorithm: str = "RS256", kid: str = "rsa", **claims: Any) -> str:
    given = {
        "iss": ISSUER, "aud": "penstock", "sub": "ann", "exp": int(time.time()) + 600,
        "grants": ["operator:team=a", "viewer"],
    } | claims  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    return jwt.encode({"alg": algorithm, "kid": kid}, given, key, algorithms=[algorithm])


def settings(provider: Provider, **more: Any) -> OidcSettings:
    return OidcSettings(issuer=ISSUER, audience="penstock", jwks_url=provider.url, **more)


def me(client: TestClient, given: str) -> Any:
    return client.get("/api/v1/me", headers={"Authorization": f"Bearer {given}"})


def test_a_valid_token_is_a_user_with_the_grants_of_its_claim(api: Api, provider: Provider) -> None:
    client = api(login=True, oidc=settings(provider))
    replies = [me(client, token()) for _ in range(3)]

    expected = {"user": "oidc:ann", "grants": ["operator:team=a", "viewer"], "limits": None}
    assert [reply.json() for reply in replies] == [expected] * 3
    assert provider.requests == 1


def unsigned() -> str:
    _head, claims, _ = token().split(".")
    return f"eyJhbGciOiJub25lIn0.{claims}."


def with_public_key_as_secret() -> str:
    claims = token().split(".")[1].encode()
    signed = urlsafe_b64encode(b'{"alg":"HS256","kid":"rsa"}').rstrip(b"=") + b"." + claims
    digest = hmac.digest(RSA.as_pem(private=False), signed, "sha256")
    return (signed + b"." + urlsafe_b64encode(digest).rstrip(b"=")).decode()


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda: token(iss="https://evil.example"), id="issuer"),
        pytest.param(lambda: token(iss=None), id="no issuer"),
        pytest.param(lambda: token(aud="other"), id="audience"),
        pytest.param(lambda: token(aud=None), id="no audience"),
        pytest.param(lambda: token(exp=int(time.time()) - 600), id="expired"),
        pytest.param(lambda: token(exp=None), id="never expires"),
        pytest.param(lambda: token(nbf=int(time.time()) + 600), id="not yet"),
        pytest.param(lambda: token(exp="soon"), id="a text as time"),
        pytest.param(lambda: token(sub=None), id="no user"),
        pytest.param(lambda: token(sub="a\nb"), id="a name with a line end"),
        pytest.param(lambda: token(sub=["ann"]), id="a list as user"),
        pytest.param(lambda: token(OTHER), id="another key"),
        pytest.param(lambda: token(OTHER, kid="unknown"), id="an unknown key"),
        pytest.param(lambda: token()[:-10] + "AAAAAAAAAA", id="changed signature"),
        pytest.param(unsigned, id="no signature"),
        pytest.param(with_public_key_as_secret, id="the public key as a secret"),
        pytest.param(lambda: "a.b.c", id="not a token"),
        pytest.param(lambda: "....", id="dots"),
        pytest.param(lambda: "x" * 20_000, id="too long"),
        pytest.param(lambda: "é", id="not ASCII"),
    ],
)
def test_a_token_that_is_not_valid_is_refused(api: Api, provider: Provider, given: Any) -> None:
    client = api(login=True, oidc=settings(provider))
    header = f"Bearer {given()}".encode()
    reply = client.get("/api/v1/me", headers={b"Authorization": header})  # type: ignore[dict-item]

    assert reply.status_code == 401, reply.text
    assert "not valid" in reply.json()["detail"]


def test_groups_are_translated_and_others_count_for_nothing(api: Api, provider: Provider) -> None:
    table = {"payments": ("operator:team=payments",)}
    client = api(login=True, oidc=settings(provider, grants_claim="groups", grants=table))

    given = token(groups=["payments", "admin", 5])
    assert me(client, given).json()["grants"] == ["operator:team=payments"]
    assert me(client, token(groups="payments other")).json()["grants"] == ["operator:team=payments"]
    assert me(client, token(groups={"a": 1})).json()["grants"] == []


def test_new_keys_are_read_when_a_token_needs_them(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api(login=True, oidc=settings(provider))
    assert me(client, token()).status_code == 200
    provider.keys = KeySet([RSA, EC]).as_dict(private=False)
    new = token(EC, "ES256", "ec")

    assert [me(client, new).status_code for _ in range(3)] == [401] * 3
    assert provider.requests == 1  # not for every token of a stranger
    monkeypatch.setattr("penstock.server.oidc._ASK_EVERY", -1.0)
    assert me(client, new).status_code == 200


def test_a_provider_that_is_away_does_not_end_what_is_known(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api(login=True, oidc=settings(provider, keys_for=-1.0))
    assert me(client, token()).status_code == 200
    provider.keys = "nothing"

    assert me(client, token()).status_code == 200


def test_without_any_keys_the_caller_is_asked_to_wait(api: Api, provider: Provider) -> None:
    provider.keys = {"keys": "none"}
    client = api(login=True, oidc=settings(provider))
    reply = me(client, token())

    assert (reply.status_code, reply.headers["retry-after"]) == (503, "30")
