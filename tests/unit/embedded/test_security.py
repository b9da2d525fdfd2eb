"""Security options that do not fit together are refused; secrets do not show."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from penstock.embedded import broker_storage
from penstock.embedded.home import Home, NodePlace, State
from penstock.embedded.properties import as_text, node_properties
from penstock.embedded.security import Security, scram_credential


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"protocol": "plaintext", "acls": True}, "acls need clients with a name"),
        ({"protocol": "ssl", "acls": True}, "acls need clients with a name"),
        ({"protocol": "plaintext", "client_certificate": True}, "needs the protocol ssl"),
        ({"protocol": "ssl", "users": {"a": "b"}}, "users need the protocol sasl"),
        ({"protocol": "sasl_ssl", "users": {"a b": "c"}}, "user name 'a b'"),
        ({"protocol": "tls"}, "plaintext"),
        ({"mechanism": "GSSAPI"}, "SCRAM-SHA-256"),
        ({"user": {}}, "Extra inputs"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Security.model_validate(options)


def test_passwords_do_not_show() -> None:
    security = Security(protocol="sasl_ssl", users={"alice": "geheim"})
    assert "geheim" not in repr(security)


def test_a_salted_user_does_not_show_its_password() -> None:
    entry = scram_credential("SCRAM-SHA-256", "alice", "geheim")
    assert entry.startswith('SCRAM-SHA-256=[name="alice",iterations=4096,salt="')
    assert "geheim" not in entry


def test_quotes_in_a_password_stay_inside_the_jaas_value(tmp_path: Path) -> None:
    node = NodePlace(1, "id", 1001, 1002, 1003)
    state = State("c", [node], "secret", users={"alice": 'a"b\\c'})
    settings = node_properties(node, state, Security(protocol="sasl_plaintext"), tmp_path)
    entry = settings["listener.name.client.plain.sasl.jaas.config"]
    assert entry.endswith('PlainLoginModule required user_alice="a\\"b\\\\c";')


def test_values_are_escaped_as_java_reads_them() -> None:
    assert as_text({"a": 'x\\y"ü😀', "b": True}) == 'a=x\\\\y"\\u00fc\\ud83d\\ude00\nb=true\n'


@pytest.mark.parametrize("protocol", ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"])
def test_every_listener_is_on_loopback(protocol: str, tmp_path: object) -> None:
    node = NodePlace(1, "id", 1001, 1002, 1003)
    security = Security.model_validate({"protocol": protocol})
    settings = node_properties(node, State("c", [node], "secret"), security, tmp_path)  # type: ignore[arg-type]
    listeners = settings["listeners"].split(",")
    assert all("://127.0.0.1:" in listener for listener in listeners)
    assert f"CLIENT:{protocol.upper()}" in settings["listener.security.protocol.map"]


def test_no_credential_of_a_user_is_an_argument_of_a_process(tmp_path, monkeypatch):
    """Every user of the machine can read the arguments of every process."""
    security = Security(
        protocol="sasl_plaintext", mechanism="SCRAM-SHA-256", users={"a": "canary-1"}
    )
    home = Home(tmp_path / "home")
    state = home.open(1, 0, security)
    started = []

    class StoppedError(Exception):
        pass

    def record(command, **_):
        started.extend(map(str, command))
        raise StoppedError

    monkeypatch.setattr(broker_storage, "Child", record)
    with pytest.raises(StoppedError):
        broker_storage.format_storage(
            home, state, security, SimpleNamespace(command=lambda *_, **__: ["x"])
        )
    file = Path(next(part for part in started if part.startswith("@"))[1:])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().count("--add-scram\n") == len(state.users)
    assert not [part for part in started if "SCRAM" in part or "salt" in part or "canary" in part]
