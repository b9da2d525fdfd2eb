"""The connections on the page about security are read without a complaint, and serve both sides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from penstock.config import Connection, resolve_references

PAGE = Path(__file__).parents[3] / "docs/security.md"
EXAMPLES = re.findall(r"```yaml\n(connections:.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(autouse=True)
def _secrets(monkeypatch):
    for name in re.findall(r"\$\{env:(\w+)\}", "".join(EXAMPLES)):
        monkeypatch.setenv(name, "hunter2")


def connections(pem):
    """The examples, with the files that they name replaced by real ones."""
    files = {"ca.pem": pem.certificate, "app.pem": pem.certificate, "app.key": pem.encrypted_key}
    page = "\0".join(EXAMPLES)
    for name, path in files.items():
        page = page.replace(f"/etc/kafka/{name}", str(path))
    for text in page.split("\0"):
        settings = yaml.safe_load(text)["connections"]["shop"]
        yield Connection.from_config(resolve_references(settings))


def test_every_mechanism_has_an_example_that_librdkafkas_side_takes(pem):
    found = [connection.librdkafka("producer") for connection in connections(pem)]
    assert [(each["security.protocol"], each.get("sasl.mechanisms")) for each in found] == [
        ("ssl", None),
        ("ssl", None),
        ("sasl_ssl", "SCRAM-SHA-512"),
        ("sasl_ssl", "OAUTHBEARER"),
        ("sasl_ssl", "OAUTHBEARER"),
        ("sasl_ssl", "GSSAPI"),
    ]


def test_all_but_the_function_of_ones_own_serve_java_too(pem):
    *found, kerberos = connections(pem)
    own = found.pop()
    assert own.sasl_oauthbearer_method is None
    for connection in (*found, kerberos):
        assert connection.jvm()["security.protocol"] == connection.security_protocol.upper()
