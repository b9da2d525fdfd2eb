"""A registry behind OAuth: tokens from a real endpoint, cached, renewed, sent to the registry alone."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import SecretStr
from tests.unit.formats.registry.http_answers import Answers

from penstock.config.secrets import mask
from penstock.errors import ConfigError, TransientError
from penstock.formats.registry import OAuth, Registry

TOKEN = {"access_token": "token-1-of-the-test", "token_type": "Bearer", "expires_in": 3600}
OTHER_TOKEN = {**TOKEN, "access_token": "token-2-of-the-test"}


@pytest.fixture
def server() -> Iterator[Callable[[], Answers]]:
    started: list[Answers] = []

    def start() -> Answers:
        started.append(Answers())
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def endpoint(server: Callable[[], Answers]) -> Answers:
    return server()


@pytest.fixture
def schemas(server: Callable[[], Answers]) -> Answers:
    return server()


def registry(schemas: Answers, endpoint: Answers, **options: Any) -> Registry:
    oauth = OAuth(f"http://{endpoint.address}/token", "app", "hunter2-secret", **options)
    return Registry(f"http://{schemas.address}", oauth=oauth, timeout=5)


def sent(schemas: Answers) -> list[str | None]:
    return [headers.get("Authorization") for headers in schemas.headers]


def test_a_token_is_fetched_once_and_sent_with_each_request(
    schemas: Answers, endpoint: Answers
) -> None:
    endpoint.say(200, TOKEN)
    schemas.say(200, ["a"])
    one = registry(schemas, endpoint, scope="schemas read", headers={"target-sr-cluster": "lsrc-1"})

    assert [one.subjects(), one.subjects()] == [["a"], ["a"]]
    form = {"grant_type": "client_credentials", "scope": "schemas read"}
    assert endpoint.asked == [("POST", "/token", form)]
    who = endpoint.headers[0]["Authorization"].removeprefix("Basic ")
    assert b64decode(who) == b"app:hunter2-secret"
    assert sent(schemas) == ["Bearer token-1-of-the-test"] * 2
    assert schemas.headers[0]["Target-Sr-Cluster"] == "lsrc-1"


def test_client_and_secret_are_encoded_before_they_become_basic_authentication(
    schemas: Answers, endpoint: Answers
) -> None:
    endpoint.say(200, TOKEN)
    schemas.say(200, [])
    oauth = OAuth(f"http://{endpoint.address}", "a:b", SecretStr("c d&e"))
    Registry(f"http://{schemas.address}", oauth=oauth).subjects()

    assert b64decode(endpoint.headers[0]["Authorization"][6:]) == b"a%3Ab:c+d%26e"
    assert endpoint.asked[0][2] == {"grant_type": "client_credentials"}


def test_a_token_near_its_end_is_renewed(schemas: Answers, endpoint: Answers) -> None:
    endpoint.say(200, {**TOKEN, "expires_in": 0.0001})
    endpoint.say(200, OTHER_TOKEN)
    schemas.say(200, [])
    one = registry(schemas, endpoint)
    one.subjects()
    one.subjects()

    assert sent(schemas) == ["Bearer token-1-of-the-test", "Bearer token-2-of-the-test"]


def test_a_token_that_was_withdrawn_is_fetched_again_once(
    schemas: Answers, endpoint: Answers
) -> None:
    endpoint.say(200, TOKEN)
    endpoint.say(200, OTHER_TOKEN)
    schemas.say(401, {"error_code": 401, "message": "expired"})
    schemas.say(200, ["a"])

    assert registry(schemas, endpoint).subjects() == ["a"]
    assert sent(schemas) == ["Bearer token-1-of-the-test", "Bearer token-2-of-the-test"]


def test_threads_that_start_together_ask_for_one_token(schemas: Answers, endpoint: Answers) -> None:
    endpoint.say(200, TOKEN)
    schemas.say(200, [])
    one = registry(schemas, endpoint)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: one.subjects(), range(8)))

    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_registry_that_refuses_the_client_is_an_error_that_names_it(
    schemas: Answers, endpoint: Answers, status: int
) -> None:
    endpoint.say(200, TOKEN)
    schemas.say(status, {"error_code": status, "message": "no"})

    with pytest.raises(ConfigError, match=r"refuses client 'app' .*check client_id, scope"):
        registry(schemas, endpoint).subjects()


def test_an_endpoint_that_refuses_the_client_is_an_error_with_its_reason(
    schemas: Answers, endpoint: Answers
) -> None:
    wrong = "no client with secret hunter2-secret"
    endpoint.say(401, {"error": "invalid_client", "error_description": wrong})

    with pytest.raises(
        ConfigError, match=r"refuses client 'app' \(HTTP 401\): no client"
    ) as caught:
        registry(schemas, endpoint).subjects()

    assert "hunter2" not in str(caught.value)
    assert (len(endpoint.asked), schemas.asked) == (1, [])


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_endpoint_that_is_busy_for_a_moment_is_asked_again(
    schemas: Answers, endpoint: Answers, status: int
) -> None:
    endpoint.say(status, b"")
    endpoint.say(200, TOKEN)
    schemas.say(200, ["a"])

    assert registry(schemas, endpoint).subjects() == ["a"]
    assert len(endpoint.asked) == 2


def test_an_endpoint_that_stays_away_is_a_transient_error_that_names_it(schemas: Answers) -> None:
    oauth = OAuth("http://127.0.0.1:1/token", "app", "hunter2-secret")

    with pytest.raises(TransientError, match=r"token endpoint http://127\.0\.0\.1:1/token"):
        Registry(f"http://{schemas.address}", oauth=oauth, timeout=1).subjects()
    assert schemas.asked == []


def test_an_endpoint_says_when_to_come_back(schemas: Answers, endpoint: Answers) -> None:
    endpoint.say(503, b"", Retry_After="30")

    with pytest.raises(TransientError) as caught:
        registry(schemas, endpoint).subjects()
    assert caught.value.retry_after == 30


def test_a_redirect_of_the_endpoint_is_not_followed(
    schemas: Answers, endpoint: Answers, server: Callable[[], Answers]
) -> None:
    other = server()
    endpoint.say(302, b"", Location=f"http://{other.address}/")

    with pytest.raises(ConfigError, match=f"HTTP 302.*{other.address}"):
        registry(schemas, endpoint).subjects()
    assert other.asked == []


@pytest.mark.parametrize("body", [{}, [1], {"access_token": "x", "expires_in": "soon"}])
def test_an_answer_without_a_token_is_refused(
    schemas: Answers, endpoint: Answers, body: Any
) -> None:
    endpoint.say(200, body)

    with pytest.raises(ConfigError, match="without an access token"):
        registry(schemas, endpoint).subjects()


def test_secret_and_token_are_never_shown(schemas: Answers, endpoint: Answers) -> None:
    endpoint.say(200, TOKEN)
    schemas.say(422, {"error_code": 422, "message": "odd"})
    one = registry(schemas, endpoint)
    with pytest.raises(ConfigError) as caught:
        one.subjects()

    oauth = OAuth("http://x", "app", "hunter2-secret", headers={"a": "hunter2-secret"})
    for shown in (
        repr(one),
        str(caught.value),
        str(vars(one)),
        repr(oauth),
        str(vars(oauth)["client_secret"]),
    ):
        assert "hunter2" not in shown
        assert "token-1" not in shown
    assert mask("got token-1-of-the-test for hunter2-secret") == "got ******** for ********"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("login.example", "app", "x"), "token address 'login.example'"),
        (("http://a:b@x", "app", "x"), "client_secret instead of in it"),
        (("http://x,http://y", "app", "x"), "give one address"),
        (("http://x", "", "x"), "both client_id and client_secret"),
        (("http://x", "app", ""), "both client_id and client_secret"),
    ],
)
def test_a_wrong_endpoint_or_half_a_client_is_refused_at_once(given: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OAuth(*given)
    assert says in str(caught.value)


@pytest.mark.parametrize("url", ["http://x", "http://app:hunter2@x"])
def test_a_user_and_oauth_together_are_refused(url: str) -> None:
    user = {} if "@" in url else {"username": "app", "password": "hunter2"}
    with pytest.raises(ConfigError, match="give one of them"):
        Registry(url, **user, oauth=OAuth("http://y", "app", "x"))


@pytest.mark.parametrize("token", ["token-1\r\nX: y", "t\u00f6ken"])
def test_a_token_that_no_header_can_have_is_refused_and_not_shown(
    schemas: Answers, endpoint: Answers, token: str
) -> None:
    endpoint.say(200, {**TOKEN, "access_token": token})
    with pytest.raises(ConfigError, match="an access token that cannot be sent in a header") as no:
        registry(schemas, endpoint).subjects()
    assert token not in str(no.value)
    assert schemas.headers == []
