"""Security options that do not fit together are refused; secrets do not show."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from penstock.embedded.home import NodePlace, State
from penstock.embedded.properties import as_text, node_properties
from penstock.embedded.security import Security, jaas, scram_credential


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


def test_quotes_in_a_password_stay_inside_the_jaas_value() -> None:
    assert jaas("x.Y", {"password": 'a"b\\c'}).endswith('Y required password="a\\"b\\\\c";')


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
