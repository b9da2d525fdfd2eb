"""What `penstock serve` refuses to start with, and where its settings come from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Command

from penstock.cli.serve import supervisor_of
from penstock.cli.serve_options import ServeOptions, merged
from penstock.cli.worker_commands import inherited_conf
from penstock.config.server_section import read_server_section
from penstock.control.places import open_store
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
        (
            ["--store", "/proc/none/control.sqlite"],
            3,
            "the deployments cannot be stored in /proc/none/control.sqlite: No such file or directory; "
            "use --store or PENSTOCK_STORE with another file",
        ),
        (["--registry", "nonsense"], 2, "--registry http://localhost:8081"),
        (["--registry", "file:///etc/passwd"], 2, "--registry http://localhost:8081"),
        (["--registry", ""], 2, "--registry http://localhost:8081"),
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
    assert found.worker_options() == []
    assert json.loads(found.worker_environment()["PENSTOCK_WORKER_CONF"]) == ["spark.x=1"]
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


def test_settings_of_spark_are_not_options_of_the_worker_which_others_see(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = ("spark.hadoop.fs.s3a.secret.key=hunter2 with 'signs' = \n", "spark.x=1")
    with open_store(str(tmp_path / "store.sqlite"), str(tmp_path / "keys")) as store:
        started = supervisor_of(store, ServeOptions(conf=conf, memory="2g"), 1)

    assert "hunter2" not in str(started.command)
    assert list(started.command[-2:]) == ["--memory", "2g"]
    for name, value in started.environment.items():
        monkeypatch.setenv(name, value)
    assert inherited_conf() == list(conf)
    assert "PENSTOCK_WORKER_CONF" not in os.environ  # Java and Python of Spark do not inherit it
    assert inherited_conf() == []


@pytest.mark.parametrize("given", ["{", "5", "null"])
def test_settings_that_are_not_a_list_are_refused(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_WORKER_CONF", given)

    with pytest.raises(ConfigError, match="PENSTOCK_WORKER_CONF is not a JSON list of texts"):
        inherited_conf()


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("registry: http://r:8081", "http://r:8081"),
        ("registry: {url: 'http://r:8081', username: a, password: hunter2}", "http://r:8081"),
    ],
)
def test_the_schema_registry_comes_from_the_file_too(own_home: Path, text: str, url: str) -> None:
    settings(own_home, f"server: {{{text}}}\n")
    found = merged(ServeOptions())
    options = found.registry_options()

    assert options
    assert options.url == url
    assert "hunter2" not in repr(found) + repr(options)
    other = merged(ServeOptions(registry="http://other:1")).registry_options()
    assert other
    assert other.url == "http://other:1"


def test_a_wrong_key_of_the_registry_is_named_without_its_values(own_home: Path) -> None:
    settings(own_home, "server: {registry: {url: 'http://r', pasword: hunter2}}\n")
    with pytest.raises(ConfigError, match=r"registry\.pasword: ") as refused:
        merged(ServeOptions()).registry_options()
    assert "hunter2" not in str(refused.value)


def test_a_folder_does_not_choose_the_registry(own_home: Path) -> None:
    Path("penstock.yaml").write_text("server: {registry: 'http://elsewhere'}\n")
    with pytest.raises(ConfigError, match="registry is not allowed in a file of the working"):
        merged(ServeOptions())


@pytest.mark.parametrize("place", ["states", "/mnt/states", "s3a://bucket/states"])
def test_workers_get_the_place_of_states_from_any_folder(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ServeOptions(state=place).worker_environment()["PENSTOCK_STATE"]

    assert given == (str(tmp_path / place) if place == "states" else place)
