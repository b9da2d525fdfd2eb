"""Requests: what is sent, who gets it, and what a status means."""

from __future__ import annotations

import pickle
import time
from base64 import b64encode
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from tests.services.json_api import Answer, JsonApi, Seen
from tests.unit.imports.http_reading import import_all

from penstock.errors import ConfigError, TerminalError, TransientError
from penstock.imports.http.http_import import HttpImport, HttpPart, HttpSystem
from penstock.imports.http.request_pace import Pace
from penstock.imports.positions import key_of

SECRET = "s3cr3t-value-1"


def test_headers_parameters_and_body_are_sent(api: JsonApi) -> None:
    api.respond = lambda _: []
    import_all(
        {
            "url": f"{api.url}?a=1&b=%2F",
            "method": "POST",
            "headers": {"X-Trace": "t"},
            "params": {"a": 2, "flag": True, "text": "x y&z"},
            "body": {"query": ["q"]},
        }
    )
    (seen,) = api.requests
    assert (seen.method, seen.path, seen.body) == ("POST", "/items", b'{"query":["q"]}')
    assert seen.params == {"b": "/", "a": "2", "flag": "true", "text": "x y&z"}
    assert seen.headers["X-Trace"] == "t"
    assert seen.headers["Accept"] == "application/json"
    assert seen.headers["User-Agent"].startswith("penstock/")


BASIC = "Basic " + b64encode(b"app:" + SECRET.encode()).decode()
FORMS = [
    ({"basic": {"username": "app", "password": SECRET}}, "Authorization", BASIC),
    ({"bearer": SECRET}, "Authorization", f"Bearer {SECRET}"),
    ({"bearer": {"token": SECRET}}, "Authorization", f"Bearer {SECRET}"),
    ({"api_key": {"header": "X-Key", "secret": SECRET}}, "X-Key", SECRET),
]


@pytest.mark.parametrize(("auth", "header", "value"), FORMS)
def test_credentials_are_sent_and_never_shown(
    api: JsonApi, auth: dict[str, Any], header: str, value: str
) -> None:
    api.respond = lambda seen: Answer({"you sent": value}, 403)
    options = HttpImport.model_validate({"url": api.url, "auth": auth})
    with pytest.raises(TerminalError, match="HTTP 403") as caught:
        import_all({"url": api.url, "auth": auth})
    assert api.requests[0].headers[header] == value
    for text in (str(caught.value), repr(options), str(options.model_dump())):
        assert SECRET not in text
        assert value not in text
    # As a task of another process gets them.
    assert pickle.loads(pickle.dumps(HttpPart(options))).options == options


def test_a_key_in_a_parameter_is_neither_shown_nor_part_of_a_position(api: JsonApi) -> None:
    api.respond = lambda seen: {
        "data": [{"id": 1}],
        "next": f"{api.url}?p=2&api_key={SECRET}" if "p" not in seen.params else None,
    }
    options = {
        "url": api.url,
        "records": "/data",
        "auth": {"api_key": {"parameter": "api_key", "secret": SECRET}},
        "paging": {"next_link": "/next"},
    }
    done = import_all(options)
    assert len(done.values) == 2
    assert [seen.params["api_key"] for seen in api.requests] == [SECRET, SECRET]
    assert done.position["link"] == f"{api.url}?p=2"
    api.respond = lambda _: Answer("no", 404)
    with pytest.raises(TerminalError) as caught:
        import_all(options)
    assert SECRET not in str(caught.value)


def test_a_token_is_fetched_once_and_again_when_it_is_refused(api: JsonApi) -> None:
    valid: list[str] = []

    def respond(seen: Seen) -> Any:
        if seen.path == "/token":
            valid[:] = [f"token-number-{len(api.requests)}"]
            return {"access_token": valid[0], "expires_in": 3600}
        is_valid = seen.headers.get("Authorization") == f"Bearer {valid[0]}"
        return [{"id": 1}] if is_valid else Answer("expired", 401)

    api.respond = respond
    oauth = {
        "token_url": api.url.replace("/items", "/token"),
        "client_id": "app",
        "client_secret": SECRET,
        "scope": "read",
    }
    options = {"url": api.url, "auth": {"oauth": oauth}}
    for _ in range(3):
        assert import_all(options).ids == [1]
    assert [seen.path for seen in api.requests] == ["/token", *["/items"] * 3]
    assert api.requests[0].body == b"grant_type=client_credentials&scope=read"
    valid[:] = ["another"]
    assert import_all(options).ids == [1]
    assert [seen.path for seen in api.requests[4:]] == ["/items", "/token", "/items"]


def test_a_token_endpoint_that_is_busy_or_refuses(api: JsonApi) -> None:
    oauth = {"token_url": api.url, "client_id": "app", "client_secret": SECRET}
    options = {"url": api.url, "auth": {"oauth": oauth}}
    api.respond = lambda _: Answer("later", 503, {"Retry-After": "70"})
    with pytest.raises(TransientError) as caught:
        import_all(options)
    assert caught.value.retry_after == 70
    api.respond = lambda _: Answer({"error": "invalid_client"}, 400)
    with pytest.raises(ConfigError, match="refuses client 'app'"):
        import_all(options)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_server_is_waited_for_as_long_as_it_says(api: JsonApi, status: int) -> None:
    api.respond = lambda _: Answer(b"slow down", status, {"Retry-After": "120"})
    with pytest.raises(
        TransientError, match=f"HTTP {status}, beginning with 'slow down'"
    ) as caught:
        import_all({"url": api.url})
    assert caught.value.retry_after == 120


def test_retry_after_may_be_a_date_or_nonsense(api: JsonApi) -> None:
    later = formatdate(time.time() + 1000, usegmt=True)
    api.respond = lambda _: Answer("", 503, {"Retry-After": later})
    with pytest.raises(TransientError) as caught:
        import_all({"url": api.url})
    assert 500 < caught.value.retry_after <= 1000
    for nonsense in ("soon", "\u00b2", "Mon, 01 Jan 2024 00:00:00 +99999999"):
        api.respond = lambda _, given=nonsense: Answer("", 503, {"Retry-After": given})
        with pytest.raises(TransientError) as caught:
            import_all({"url": api.url})
        assert caught.value.retry_after == 1


@pytest.mark.parametrize("asked", ["100000", "9" * 400, "Mon, 01 Jan 9999 00:00:00 GMT"])
def test_a_server_that_wants_to_be_left_alone_for_years_is_asked_after_a_day(
    api: JsonApi, asked: str
) -> None:
    api.respond = lambda _: Answer("", 503, {"Retry-After": asked})
    with pytest.raises(TransientError) as caught:
        import_all({"url": api.url})
    assert caught.value.retry_after == 86_400


def test_a_server_that_is_away_or_ends_early_is_waited_for(api: JsonApi) -> None:
    api.respond = lambda _: Answer([1], headers={"Content-Length": "1000"})
    with pytest.raises(TransientError, match="the body ends after 3 of 1000 bytes"):
        import_all({"url": api.url})
    api.stop()
    with pytest.raises(TransientError, match=r"cannot be reached: .*refused"):
        import_all({"url": api.url})


def test_refused_credentials_are_an_error_of_the_definition(api: JsonApi) -> None:
    api.respond = lambda _: Answer("who?", 401)
    with pytest.raises(ConfigError, match="refuses the credentials; check 'auth'"):
        import_all({"url": api.url, "auth": {"bearer": SECRET}})


def test_a_redirect_is_followed_on_the_same_host_only(api: JsonApi) -> None:
    with JsonApi(lambda _: [{"id": 2}]) as other:
        moved = {"to": "/new?x=1"}
        api.respond = lambda seen: (
            [{"id": 1}] if seen.path == "/new" else Answer("", 302, {"Location": moved["to"]})
        )
        options = {"url": api.url, "auth": {"bearer": SECRET}}
        assert import_all(options).ids == [1]
        assert api.requests[1].headers["Authorization"] == f"Bearer {SECRET}"
        moved["to"] = other.url
        with pytest.raises(TerminalError, match=r"a redirect .* is not followed.*\(none\)"):
            import_all(options)
        assert other.requests == []
        allowed = {**options, "allow_hosts": [f"127.0.0.1:{other.port}"]}
        assert import_all(allowed).ids == [2]
        moved["to"] = "file:///etc/passwd"
        with pytest.raises(TerminalError, match="is not followed"):
            import_all(options)


@pytest.mark.parametrize(
    "target", ["http://[::1", "http://127.0.0.1:ab/", "http://127.0.0.1:99999/"]
)
def test_a_redirect_or_next_link_that_is_not_an_address_is_named(api: JsonApi, target: str) -> None:
    api.respond = lambda _: Answer("", 302, {"Location": target})
    with pytest.raises(TerminalError, match=r"a redirect of .* which is not an address: "):
        import_all({"url": api.url})
    api.respond = lambda _: {"data": [{"id": 1}], "next": target}
    with pytest.raises(TerminalError, match=r"the next link of .* which is not an address: "):
        import_all({"url": api.url, "records": "/data", "paging": {"next_link": "/next"}})


def test_redirects_end(api: JsonApi) -> None:
    api.respond = lambda _: Answer("", 307, {"Location": "/items"})
    with pytest.raises(TerminalError, match="redirects more than 5 times"):
        import_all({"url": api.url})
    api.respond = lambda _: Answer("", 301, {"Location": "/other"})
    with pytest.raises(TerminalError, match="would become a GET; give the address"):
        import_all({"url": api.url, "method": "POST", "body": {}})


def test_a_ca_file_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for ca in ("ca.pem", "missing.pem"):
        source = HttpImport(url="https://localhost", ca=str(tmp_path / ca))
        with pytest.raises(ConfigError, match="'ca' is a PEM file"):
            source.system()


def test_requests_have_their_rate() -> None:
    now, waits = [100.0], []

    def sleep(seconds: float) -> None:
        waits.append(round(seconds, 6))
        now[0] += seconds

    for _ in range(2):  # the second task goes on where the first one ended
        pace = Pace("test", 4, lambda: now[0], sleep)
        pace.wait()
        now[0] += 0.1
        pace.wait()
        now[0] += 1
    assert waits == [0.25, 0.15, 0.15]


def test_a_poll_that_imports_everything_is_due_after_its_time() -> None:
    now = [0.0]
    source = HttpImport(url="http://a/b?x=1", poll=10)
    system = HttpSystem(source, lambda: now[0])
    (part,) = system.pending({})
    assert part.place == {"url": "http://a/b"}
    place = key_of(part.place)
    assert system.pending({})  # it gave nothing
    assert system.pending({place: {"poll": 1}}) == []
    now[0] = 10.0
    assert system.pending({place: {"poll": 1}})
    assert system.pending({place: {"poll": 2}}) == []
    # A new process asks at once, and other forms of paging always.
    assert HttpSystem(source, lambda: now[0]).pending({place: {"poll": 2}})
    paged = HttpImport(url="http://a/b", paging={"offset": {}})
    assert HttpSystem(paged).pending({place: {"count": 3}})
