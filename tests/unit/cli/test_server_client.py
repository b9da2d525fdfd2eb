"""The client of a server: which server, which token, and what its replies mean."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.services.penstock_server import PenstockServer

from penstock.api_client.server_address import (
    Credentials,
    ServerAddress,
    checked_url,
    find_credentials,
    find_server,
    store_credentials,
)
from penstock.api_client.server_client import ServerClient
from penstock.config.directories import config_dir
from penstock.embedded.certificates import Authority
from penstock.embedded.ports import free_ports
from penstock.errors import (
    ConfigError,
    DefinitionError,
    GroupInUseError,
    NotFoundError,
    PenstockError,
    SetupError,
    TransientError,
)
from penstock.server.listening import TlsFiles

PROBLEM = {"Content-Type": "application/problem+json"}


class Replies(BaseHTTPRequestHandler):
    """Replies with what the test wants; notes the headers of requests."""

    protocol_version = "HTTP/1.1"
    reply: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")
    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        status, headers, body = self.reply
        self.seen.append(dict(self.headers))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def odd() -> Iterator[tuple[str, type[Replies]]]:
    """A server that replies what no Penstock server does."""
    handler: type[Replies] = type("Own", (Replies,), {"seen": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "text"),
    [
        (404, PROBLEM, b'{"detail": "there is no x"}', NotFoundError, "there is no x"),
        (412, PROBLEM, b'{"detail": "changed by ann"}', ConfigError, "changed by ann"),
        (409, PROBLEM, b'{"detail": "in use"}', GroupInUseError, "in use"),
        (401, PROBLEM, b'{"detail": "log in first"}', ConfigError, "penstock login --server"),
        (403, PROBLEM, b'{"detail": "not allowed"}', ConfigError, "not allowed"),
        (501, PROBLEM, b'{"detail": "no Spark"}', SetupError, "no Spark"),
        (500, PROBLEM, b'{"detail": "failed"}', PenstockError, "failed"),
        (503, PROBLEM, b'{"detail": "store away"}', TransientError, "store away"),
        (422, PROBLEM, b'{"problems": [{"where": "sink", "message": "m", "line": 3}]}',
         DefinitionError, "line 3: sink: m"),
        (422, PROBLEM, b'{"problems": [7, {"line": "x"}], "detail": "d"}', DefinitionError, "None"),
        (404, PROBLEM, b"[]", NotFoundError, "the status 404"),
        (404, PROBLEM, b"\xff", NotFoundError, "the status 404"),
        (404, {"Content-Type": "text/html"}, b"<h1>", ConfigError, "not reply as a Penstock server"),
        (502, {}, b"", TransientError, "a proxy cannot reach the server"),
        (302, {"Location": "https://x/"}, b"", ConfigError, "redirects to https://x/; give that"),
        (200, {}, b"<html>", ConfigError, "not reply as a Penstock server"),
    ],
)  # fmt: skip
def test_a_reply_becomes_the_error_that_it_describes(
    odd: tuple[str, type[Replies]],
    status: int,
    headers: dict[str, str],
    body: bytes,
    kind: type[PenstockError],
    text: str,
) -> None:
    url, handler = odd
    handler.reply = (status, headers, body)

    with ServerClient(ServerAddress(url)) as client, pytest.raises(kind, match=text) as raised:
        client.get("/deployments")

    assert raised.value.exit_code == kind.exit_code


def test_the_wait_that_a_server_asks_for_is_in_the_error(odd: tuple[str, type[Replies]]) -> None:
    url, handler = odd
    handler.reply = (429, PROBLEM | {"Retry-After": "7"}, b'{"detail": "later"}')

    with ServerClient(ServerAddress(url)) as client, pytest.raises(TransientError) as raised:
        client.get("/deployments")

    assert raised.value.retry_after == 7


def test_a_server_that_is_away_is_exit_code_4_with_what_to_do() -> None:
    address = ServerAddress(f"http://127.0.0.1:{free_ports(1)[0]}")

    with ServerClient(address) as client, pytest.raises(TransientError) as raised:
        client.get("/deployments")

    assert "Connection refused" in str(raised.value)
    assert "--server" in str(raised.value)


def test_a_connection_that_the_server_closed_is_opened_again(server: PenstockServer) -> None:
    with ServerClient(ServerAddress(server.url)) as client:
        assert client.get("/deployments")["items"] == []
        server.stop()
        server.start()
        assert client.get("/deployments")["items"] == []


def test_several_requests_at_once_go_over_few_connections(server: PenstockServer) -> None:
    with ServerClient(ServerAddress(server.url)) as client:
        replies = client.each(lambda _: client.get("/me")["user"], list(range(100)))

        assert replies == ["local"] * 100
        assert len(client._open) <= 8


def test_tls_with_the_authority_of_the_server(tmp_path: Path, empty_store: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.server("server")
    folder = tmp_path / "store"
    folder.mkdir()
    tls = TlsFiles(str(own.certificate), str(own.key))
    with PenstockServer(folder, empty_store, tls) as server:
        with ServerClient(ServerAddress(server.url, str(authority.ca))) as client:
            assert client.get("/me")["user"] == "local"
        with (
            ServerClient(ServerAddress(server.url)) as client,
            pytest.raises(ConfigError, match=r"is not trusted: .*--ca"),
        ):
            client.get("/me")
        with (
            ServerClient(ServerAddress(server.url, str(tmp_path / "none"))) as client,
            pytest.raises(ConfigError, match="is not a PEM file"),
        ):
            client.get("/me")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("penstock.example", "is not the address of a server"),
        ("ftp://a", "is not the address of a server"),
        ("http://", "is not the address of a server"),
        ("http://a:99999", "is not the address of a server"),
        ("http://a?x=1", "is not the address of a server"),
        ("http://ann:secret@a", "has no user and password"),
    ],
)
def test_an_address_that_is_not_one_is_refused(url: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as raised:
        checked_url(url)
    assert "secret" not in str(raised.value)


def test_the_server_is_the_given_one_or_that_of_the_settings(own_home: Path) -> None:
    assert find_server().url == "http://127.0.0.1:8083"

    Path("penstock.yaml").write_text("server: {url: 'http://localhost:9999'}\n")

    assert find_server() == ServerAddress("http://localhost:9999", trusted=False)
    assert find_server("http://a:1") == ServerAddress("http://a:1")


CONTEXTS = """server:
  context: production
  contexts:
    production: {url: "https://Penstock.example/", ca: /etc/ca.pem}
    laptop: {url: "http://127.0.0.1:8083"}
"""


def test_a_server_has_a_name_in_the_settings_of_the_user(own_home: Path) -> None:
    (config_dir() / "penstock.yaml").write_text(CONTEXTS)
    production = ServerAddress("https://penstock.example", "/etc/ca.pem")

    assert find_server() == find_server("production") == production
    assert find_server("laptop") == ServerAddress("http://127.0.0.1:8083")
    assert find_server("production", "own.pem").ca == "own.pem"
    with pytest.raises(ConfigError, match="did you mean 'laptop'"):
        find_server("laptob")

    Path("penstock.yaml").write_text("server: {url: 'http://localhost:9999'}\n")
    assert (find_server().url, find_server("production")) == ("http://localhost:9999", production)


def test_a_file_of_the_working_folder_names_no_contexts(own_home: Path) -> None:
    with pytest.raises(ConfigError, match=r"'production' is not .*https://.* it has none"):
        find_server("production")
    Path("penstock.yaml").write_text(CONTEXTS)

    with pytest.raises(ConfigError, match="nor is it a context of your"):
        find_server("production")
    with pytest.raises(ConfigError, match="context is not allowed in a file of the working"):
        find_server()


def test_a_token_is_stored_for_one_server_and_only_its_owner_reads_it(own_home: Path) -> None:
    file = store_credentials("https://a", Credentials("pst_1", "ann", "7"))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert find_credentials(ServerAddress("https://a")) == Credentials("pst_1", "ann", "7")
    assert find_credentials(ServerAddress("https://b")) is None
    assert "pst_1" not in repr(find_credentials(ServerAddress("https://a")))


def test_the_token_of_the_environment_goes_to_no_server_of_the_folder(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_TOKEN", "pst_2")

    assert find_credentials(ServerAddress("https://a")) == Credentials("pst_2")
    assert find_credentials(ServerAddress("https://a", trusted=False)) is None


def test_a_token_is_not_sent_in_the_clear(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TOKEN", "pst_2")

    with pytest.raises(ConfigError, match="is not encrypted"):
        find_credentials(ServerAddress("http://penstock.example"))
    assert find_credentials(ServerAddress("http://127.0.0.1:1")) is not None


@pytest.mark.parametrize("token", ["a\r\nX: y", "ä", "a b"])
def test_a_token_cannot_carry_other_headers(
    token: str, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_TOKEN", token)

    with pytest.raises(ConfigError, match="is not a token"):
        find_credentials(ServerAddress("https://a"))


def test_a_stored_token_that_is_damaged_says_what_to_do(own_home: Path) -> None:
    store_credentials("https://a", Credentials("pst_1")).write_text("[]")

    with pytest.raises(ConfigError, match="remove it, and run 'penstock login'"):
        find_credentials(ServerAddress("https://a"))


def test_the_token_is_sent_as_a_bearer(odd: tuple[str, type[Replies]]) -> None:
    url, handler = odd
    with ServerClient(ServerAddress(url), Credentials("pst_3")) as client:
        client.get("/me")

    assert handler.seen[0]["Authorization"] == "Bearer pst_3"
