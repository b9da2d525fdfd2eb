"""The provider of tokens: what it signs can be checked, and only those who know the secret get one."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from penstock.embedded import Broker, Security
from penstock.embedded.access import Access
from penstock.embedded.oidc import AUDIENCE, ISSUER, Issuer, TokenEndpoint
from penstock.errors import ConfigError


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def endpoint(issuer: Issuer) -> Iterator[TokenEndpoint]:
    endpoint = TokenEndpoint(issuer, {"alice": 'pass:"wörd'})
    yield endpoint
    endpoint.close()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims(token: str) -> dict[str, Any]:
    return json.loads(decoded(token.split(".")[1]))


def verify(token: str, jwks: str) -> None:
    key = json.loads(jwks)["keys"][0]
    numbers = [int.from_bytes(decoded(key[part]), "big") for part in ("e", "n")]
    signed, _, signature = token.rpartition(".")
    public = rsa.RSAPublicNumbers(*numbers).public_key()
    public.verify(decoded(signature), signed.encode(), padding.PKCS1v15(), SHA256())


def ask(endpoint: TokenEndpoint, body: str, **headers: str) -> tuple[int, dict[str, Any]]:
    request = Request(endpoint.url, body.encode(), headers)
    try:
        with urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def basic(name: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


def test_a_token_names_its_user_and_fits_the_published_key(issuer: Issuer) -> None:
    token = issuer.token("alice", lifetime=100)
    verify(token, issuer.jwks())
    token_claims = claims(token)
    assert (token_claims["sub"], token_claims["iss"], token_claims["aud"]) == (
        "alice",
        ISSUER,
        AUDIENCE,
    )
    assert token_claims["iat"] <= time.time() < token_claims["exp"] <= time.time() + 100


def test_a_token_of_another_issuer_does_not_fit(issuer: Issuer) -> None:
    with pytest.raises(InvalidSignature):
        verify(Issuer().token("alice"), issuer.jwks())


def test_an_expired_token_was_issued_before_it_expired(issuer: Issuer) -> None:
    token_claims = claims(issuer.token("alice", lifetime=-3600))
    assert token_claims["iat"] < token_claims["exp"] < time.time()


def test_the_secret_gives_a_token_in_a_header_or_in_the_form(endpoint: TokenEndpoint) -> None:
    secret = 'pass:"wörd'
    status, answer = ask(
        endpoint, "grant_type=client_credentials", Authorization=basic("alice", secret)
    )
    assert (status, claims(answer["access_token"])["sub"]) == (200, "alice")
    form = "grant_type=client_credentials&client_id=alice&client_secret=pass%3A%22w%C3%B6rd"
    assert ask(endpoint, form)[0] == 200


@pytest.mark.parametrize(
    "authorization",
    ["", "Basic !!", basic("alice", "wrong"), basic("bob", ""), basic("", ""), "Bearer x"],
)
def test_whoever_does_not_know_the_secret_gets_nothing(
    endpoint: TokenEndpoint, authorization: str
) -> None:
    status, answer = ask(endpoint, "grant_type=client_credentials", Authorization=authorization)
    assert (status, answer["error"]) == (401, "invalid_client")


def test_another_grant_is_refused(endpoint: TokenEndpoint) -> None:
    status, answer = ask(endpoint, "grant_type=password&username=alice")
    assert (status, answer["error"]) == (400, "unsupported_grant_type")


def test_a_detached_broker_cannot_give_tokens(tmp_path: Any) -> None:
    security = Security(protocol="sasl_plaintext", mechanism="OAUTHBEARER")
    with pytest.raises(ConfigError, match=r"OAUTHBEARER.*foreground"):
        Broker(security=security, data_dir=tmp_path, detached=True)


def test_kafka_reads_no_keys_from_a_path_with_blanks(tmp_path: Any) -> None:
    security = Security(protocol="sasl_plaintext", mechanism="OAUTHBEARER")
    state: Any = SimpleNamespace(users={})
    with pytest.raises(ConfigError, match="give another data_dir"):
        Access(tmp_path / "my data", state, security)
