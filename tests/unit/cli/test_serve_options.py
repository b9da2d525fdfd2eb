"""What `penstock serve` refuses to start with, and where its settings come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import Command

from penstock.cli.serve_options import ServeOptions, merged
from penstock.config.server_section import read_server_section
from penstock.errors import ConfigError
from penstock.server.listening import listen


def settings(home: Path, text: str) -> None:
    """Write the settings of the user."""
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "penstock.yaml").write_text(text)


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (["--host", "0.0.0.0"], 2, "no name is allowed for it"),
        (["--host", "0.0.0.0", "--allowed-host", "a"], 2, "passwords would be sent in the clear"),
        (
            ["--host", "0.0.0.0", "--allowed-host", "a", "--behind-proxy"],
            2,
            "penstock users add|add one",
        ),
        (["--login"], 2, "the server needs users"),
        (["--allowed-host", "*"], 2, "a web page could use the server"),
        (["--tls-cert", "a.pem"], 2, "--tls-cert is given without --tls-key"),
        (["--tls-cert", "a.pem", "--tls-key", "b.pem"], 2, "cannot be used: No such file"),
        (["--conf", "nonsense"], 2, "--conf 'nonsense' is not a setting"),
        (["--workers", "-1"], 2, "--workers"),
        (["--port", "70000"], 2, "--port"),
        (["--store", "mysql://x/y"], 2, "the store cannot be in 'mysql'"),
        (["--store", "/proc/none/control.sqlite"], 3, ""),
        (["--host", "192.0.2.7", "--behind-proxy"], 2, "add one|users"),
    ],
)
def test_an_unsafe_or_wrong_start_is_refused(
    args: list[str], code: int, text: str, command: Command
) -> None:
    ended = command("serve", "--workers", "0", "--port", "0", *args)

    assert ended.code == code, ended
    assert any(each in ended.err for each in text.split("|")), ended.err
    assert "Traceback" not in ended.err


def test_a_port_in_use_is_exit_code_3(command: Command) -> None:
    with listen("127.0.0.1", 0) as taken:
        ended = command("serve", "--workers", "0", "--port", taken.getsockname()[1])

    assert ended.code == 3
    assert "is in use by another program" in ended.err


def test_settings_come_from_the_file_and_options_replace_them(own_home: Path) -> None:
    settings(
        own_home,
        "server: {port: 9000, workers: 3, store: /a, allowed_hosts: [b], conf: {spark.x: '1'}, "
        "oidc: {issuer: i, audience: a, jwks_url: 'https://x', grants: {team: [viewer]}}}\n",
    )

    found = merged(ServeOptions(workers=0))

    assert (found.port, found.workers, found.store, found.conf) == (9000, 0, "/a", ("spark.x=1",))
    assert found.settings().allowed_hosts == frozenset({"b"})
    assert found.oidc is not None
    assert found.oidc.grants == {"team": ("viewer",)}
    assert found.worker_options() == ["--conf", "spark.x=1"]
    assert found.url(1) == "http://127.0.0.1:1"


def test_without_a_file_there_are_defaults(own_home: Path) -> None:
    found = merged(ServeOptions())

    assert (found.port, found.settings().host, found.settings().workers) == (8083, "127.0.0.1", 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server: 7", "server: a plain value given"),
        ("server: {prot: 1}", "unknown key 'prot': did you mean 'port'"),
        ("server: {port: x}", "server: port: "),
        ("server: {port: 70000}", "server: port: "),
        ("server: {workers: -1}", "server: workers: "),
        ("server: {store: '${env:NOT_SET_ANYWHERE}'}", "NOT_SET_ANYWHERE"),
        ("server: {oidc: {issuer: i}}", "oidc: it needs other keys; allowed: issuer, audience"),
        ("server: {oidc: {issuer: i, audience: a, jwks_url: 'http://x'}}", "come over https"),
    ],
)
def test_a_wrong_section_says_where(text: str, message: str, own_home: Path) -> None:
    settings(own_home, text)

    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        merged(ServeOptions())


@pytest.mark.parametrize(
    "text", ["store: x", "conf: {spark.jars: evil}", "host: 0.0.0.0", "ca: a.pem", "keys: a",
             "tls_key: k", "behind_proxy: true", "allowed_hosts: ['*']", "oidc: {}", "state: /x"]
)  # fmt: skip
def test_a_file_of_the_working_folder_cannot_open_a_server_or_choose_its_store(
    text: str, own_home: Path
) -> None:
    Path("penstock.yaml").write_text(f"server: {{{text}}}\n")

    with pytest.raises(ConfigError, match="is not allowed in a file of the working directory"):
        read_server_section()


def test_a_file_of_the_working_folder_may_name_a_server(own_home: Path) -> None:
    Path("penstock.yaml").write_text("server: {url: 'https://a', workers: 2}\n")

    section, is_own = read_server_section()

    assert (section.url, section.workers, is_own) == ("https://a", 2, False)
