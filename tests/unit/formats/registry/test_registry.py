"""The client of the registry: what it asks, what it remembers, and how it says what went wrong."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.unit.formats.registry.http_answers import Answers

from penstock.embedded.certificates import Authority
from penstock.errors import ConfigError, TransientError
from penstock.formats.registry import Registered, Registry, Schema, Tls

SCHEMA = Schema('"string"')


@pytest.fixture
def answers() -> Iterator[Answers]:
    server = Answers()
    yield server
    server.close()


@pytest.fixture
def registry(answers: Answers) -> Registry:
    return Registry(f"http://{answers.address}/api")


VERSION = {"subject": "s", "version": 3, "id": 7, "schema": '"string"'}
CALLS: list[tuple[Callable[[Registry], Any], Any, tuple[str, str, Any], Any]] = [
    (lambda r: r.subjects(), ["a"], ("GET", "/api/subjects", None), ["a"]),
    (lambda r: r.versions("a/b"), [1], ("GET", "/api/subjects/a%2Fb/versions", None), [1]),
    (
        lambda r: r.version("s", 3),
        VERSION,
        ("GET", "/api/subjects/s/versions/3", None),
        Registered("s", 3, 7, SCHEMA),
    ),
    (
        lambda r: r.latest("s", "serialized"),
        VERSION,
        ("GET", "/api/subjects/s/versions/latest?format=serialized", None),
        Registered("s", 3, 7, SCHEMA),
    ),
    (lambda r: r.schema(7), VERSION, ("GET", "/api/schemas/ids/7", None), SCHEMA),
    (
        lambda r: r.register("s", SCHEMA),
        {"id": 7},
        ("POST", "/api/subjects/s/versions", {"schema": '"string"', "schemaType": "AVRO"}),
        7,
    ),
    (
        lambda r: r.lookup("s", SCHEMA),
        VERSION,
        ("POST", "/api/subjects/s", {"schema": '"string"', "schemaType": "AVRO"}),
        Registered("s", 3, 7, SCHEMA),
    ),
    (
        lambda r: r.problems("s", SCHEMA),
        {"is_compatible": False, "messages": ["one", "two"]},
        (
            "POST",
            "/api/compatibility/subjects/s/versions/latest?verbose=true",
            {"schema": '"string"', "schemaType": "AVRO"},
        ),
        ["one", "two"],
    ),
    (
        lambda r: r.compatibility(),
        {"compatibilityLevel": "FULL"},
        ("GET", "/api/config", None),
        "FULL",
    ),
    (
        lambda r: r.set_compatibility("NONE", "s"),
        {"compatibility": "NONE"},
        ("PUT", "/api/config/s", {"compatibility": "NONE"}),
        None,
    ),
]


@pytest.mark.parametrize(("call", "answer", "asked", "result"), CALLS)
def test_each_call_asks_its_question_and_gives_the_answer(
    answers: Answers, call: Any, answer: Any, asked: Any, result: Any
) -> None:
    answers.say(200, answer)

    assert call(Registry(f"http://{answers.address}/api")) == result
    assert answers.asked == [asked]


@pytest.mark.parametrize("call", [CALLS[place][0] for place in (2, 3, 4, 5, 6)])
def test_what_cannot_change_is_asked_once(registry: Registry, answers: Answers, call: Any) -> None:
    answers.say(200, VERSION)

    assert call(registry) == call(registry)
    assert len(answers.asked) == 1


def test_the_latest_version_is_asked_for_again_when_it_is_old(answers: Answers) -> None:
    registry = Registry(f"http://{answers.address}", latest_for=0)
    answers.say(200, VERSION)
    answers.say(200, {**VERSION, "version": 4})

    assert [registry.latest("s").version, registry.latest("s").version] == [3, 4]


def test_an_id_that_is_not_there_is_not_asked_for_by_every_bad_record(
    registry: Registry, answers: Answers
) -> None:
    answers.say(404, {"error_code": 40403, "message": "Schema not found"})

    assert [registry.find(9), registry.find(9)] == [None, None]
    assert len(answers.asked) == 1
    with pytest.raises(ConfigError, match="has no schema with id 9"):
        registry.schema(9)


def test_an_id_that_no_registry_can_have_is_not_asked_for(
    answers: Answers, registry: Registry
) -> None:
    assert registry.find(2**31) is None
    assert answers.asked == []


@pytest.mark.parametrize(
    ("status", "message", "call", "says"),
    [
        (401, "", lambda r: r.subjects(), "check username, password"),
        (403, "", lambda r: r.subjects(), "check username, password"),
        (
            404,
            "no such subject",
            lambda r: r.versions("s"),
            "check the name with Registry.subjects",
        ),
        (404, "none", lambda r: r.lookup("s", SCHEMA), "or give auto_register=True"),
        (409, "field x has no default", lambda r: r.register("s", SCHEMA), "stays compatible"),
        (422, "invalid schema", lambda r: r.register("s", SCHEMA), "not valid: correct them"),
        (422, "odd", lambda r: r.lookup("s", SCHEMA), "not valid: correct them"),
        (422, "odd", lambda r: r.problems("s", SCHEMA), "not valid: correct them"),
        (400, "odd", lambda r: r.find(1), "check the address"),
    ],
)
def test_a_refusal_is_an_error_with_the_registrys_reason_and_what_to_do(
    answers: Answers, status: int, message: str, call: Any, says: str
) -> None:
    answers.say(status, {"error_code": status, "message": message})

    with pytest.raises(ConfigError) as caught:
        call(Registry(f"http://{answers.address}/api"))

    assert message in str(caught.value)
    assert says in str(caught.value)
    assert answers.address in str(caught.value)
    assert len(answers.asked) == 1


def test_a_subject_without_versions_takes_any_schema(registry: Registry, answers: Answers) -> None:
    answers.say(404, {"error_code": 40401, "message": "no subject"})

    assert registry.problems("s", SCHEMA) == []


def test_an_unknown_level_is_refused_before_anything_is_asked(
    registry: Registry, answers: Answers
) -> None:
    with pytest.raises(ConfigError, match="did you mean 'BACKWARD'"):
        registry.set_compatibility("BACKWRD")

    assert answers.asked == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_is_busy_for_a_moment_is_asked_again(
    registry: Registry, answers: Answers, status: int
) -> None:
    answers.say(status, b"<html>")
    answers.say(status, {"error_code": 50001, "message": "no leader"})
    answers.say(200, ["a"])

    assert registry.subjects() == ["a"]
    assert len(answers.asked) == 3


def test_a_registry_that_stays_busy_is_a_transient_error_that_says_when_to_come_back(
    answers: Answers,
) -> None:
    registry = Registry(f"http://{answers.address}", timeout=5)
    answers.say(503, {"error_code": 50301, "message": "starting"}, Retry_After="30")

    with pytest.raises(TransientError, match="HTTP 503 starting") as caught:
        registry.subjects()

    assert caught.value.retry_after == 30
    assert len(answers.asked) == 1


def test_a_time_to_come_back_may_be_a_date(answers: Answers) -> None:
    registry = Registry(f"http://{answers.address}", timeout=5)
    answers.say(429, b"", Retry_After=formatdate(time.time() + 100, usegmt=True))

    with pytest.raises(TransientError) as caught:
        registry.subjects()

    assert 90 < caught.value.retry_after <= 100


def test_no_server_at_the_address_is_a_transient_error() -> None:
    with pytest.raises(TransientError, match=r"127\.0\.0\.1:1 is away or busy: .*refused"):
        Registry("http://127.0.0.1:1", timeout=2).subjects()


def test_a_registry_that_hangs_is_given_up_when_the_time_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(TransientError, match="timed out"):
            Registry(f"http://127.0.0.1:{port}", timeout=0.3).subjects()


def test_another_address_of_the_registry_is_asked_when_one_is_away(answers: Answers) -> None:
    answers.say(200, ["a"])

    assert Registry(f"http://127.0.0.1:1, http://{answers.address}").subjects() == ["a"]


@pytest.mark.parametrize("body", [b"<html>welcome</html>", b"[1]", b'"x"', b"{}"])
def test_an_answer_that_no_registry_gives_is_refused(
    registry: Registry, answers: Answers, body: bytes
) -> None:
    answers.say(200, body)

    with pytest.raises(ConfigError, match=r"check the address|is it the address"):
        registry.find(1)


def test_a_redirect_is_not_followed_and_the_password_goes_nowhere(answers: Answers) -> None:
    other = Answers()
    answers.say(302, b"", Location=f"http://{other.address}/")
    registry = Registry(f"http://{answers.address}", "app", "hunter2")

    with pytest.raises(ConfigError, match=f"has moved to http://{other.address}/: give that"):
        registry.subjects()
    other.close()
    assert other.asked == []


@pytest.mark.parametrize("password", ["hunter2", SecretStr("hunter2")])
def test_user_and_password_are_sent_and_never_shown(answers: Answers, password: Any) -> None:
    registry = Registry(f"http://{answers.address}", "app", password)
    answers.say(401, {"error_code": 40101, "message": "Unauthorized"})

    with pytest.raises(ConfigError, match="refuses user 'app'") as caught:
        registry.subjects()

    assert answers.headers[0]["Authorization"] == "Basic YXBwOmh1bnRlcjI="
    for shown in (repr(registry), str(caught.value), str(vars(registry)), registry.url):
        assert "hunter2" not in shown
        assert "YXBwOmh1bnRlcjI" not in shown


def test_user_and_password_in_the_address_are_used_and_not_shown(answers: Answers) -> None:
    registry = Registry(f"http://app:hunter2@{answers.address}")
    answers.say(200, [])

    assert registry.subjects() == []
    assert answers.headers[0]["Authorization"] == "Basic YXBwOmh1bnRlcjI="
    assert "hunter2" not in repr(registry)


def test_user_and_password_in_one_address_are_not_sent_to_another(answers: Answers) -> None:
    other = Answers()
    answers.say(503, {})
    other.say(200, [])
    assert Registry(f"http://app:hunter2@{answers.address},http://{other.address}").subjects() == []
    other.close()
    assert "Authorization" in answers.headers[0]
    assert "Authorization" not in other.headers[0]


def test_user_and_password_that_are_given_apart_are_for_each_address(answers: Answers) -> None:
    other = Answers()
    answers.say(503, {})
    other.say(200, [])
    urls = f"http://{answers.address},http://{other.address}"
    assert Registry(urls, "app", "hunter2").subjects() == []
    other.close()
    assert answers.headers[0]["Authorization"] == other.headers[0]["Authorization"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"url": "localhost:8081"}, "allowed are http://HOST:PORT/PATH"),
        ({"url": "file:///etc/passwd"}, "allowed are http://HOST:PORT/PATH"),
        ({"url": "ftp://app:hunter2@x"}, "registry address 'ftp://x'"),
        ({"url": "http://x", "username": "app"}, "both username and password"),
        ({"url": "http://x", "password": "hunter2"}, "both username and password"),
    ],
)
def test_a_wrong_address_or_half_a_user_is_refused_at_once(given: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Registry(**given)

    assert says in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Answers, Authority]]:
    authority = Authority(tmp_path)
    made = authority.server("registry")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca)
    server = Answers(context)
    server.say(200, ["a"])
    yield server, authority
    server.close()


def test_a_registry_behind_tls_takes_the_client_with_its_certificate(secure: Any) -> None:
    server, authority = secure
    made = authority.client("app", "hunter2")
    tls = Tls(str(authority.ca), str(made.certificate), str(made.key), "hunter2")

    assert Registry(f"https://{server.address}", tls=tls).subjects() == ["a"]
    assert "hunter2" not in repr(tls)


def test_a_certificate_that_is_not_trusted_is_an_error_that_says_what_to_give(secure: Any) -> None:
    server, _ = secure

    with pytest.raises(ConfigError, match=r"CERTIFICATE_VERIFY_FAILED.*check tls=Tls\(ca="):
        Registry(f"https://{server.address}").subjects()


def test_a_wrong_key_password_is_an_error_that_names_the_files(secure: Any) -> None:
    _, authority = secure
    made = authority.client("app", "hunter2")
    tls = Tls(str(authority.ca), str(made.certificate), str(made.key), "wrong")

    with pytest.raises(ConfigError, match=r"cannot load the PEM files .*app"):
        Registry("https://127.0.0.1:1", tls=tls)
