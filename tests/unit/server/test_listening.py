"""Where a server listens, and with which certificate: what is wrong is known before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.embedded.certificates import Authority
from penstock.errors import ConfigError, PenstockError, SetupError
from penstock.server.listening import listen, read_tls


def test_a_port_that_is_in_use_is_an_error_of_this_machine() -> None:
    with (
        listen("127.0.0.1", 0) as first,
        pytest.raises(SetupError, match=r"is in use by another program.*--port"),
    ):
        listen("127.0.0.1", first.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "kind", "text"),
    [
        ("no-such-host.invalid", ConfigError, "is not an address of this machine"),
        ("192.0.2.1", ConfigError, "cannot listen at 192.0.2.1"),
        ("a\x00b", PenstockError, "is not an address"),
        ("a" * 300, ConfigError, "is not an address"),
    ],
)
def test_an_address_of_another_machine_is_refused(
    host: str, kind: type[PenstockError], text: str
) -> None:
    with pytest.raises(kind, match=text):
        listen(host, 0)


def test_a_certificate_with_its_key(tmp_path: Path) -> None:
    own = Authority(tmp_path).server("a")

    assert read_tls(str(own.certificate), str(own.key)) is not None
    assert read_tls(None, None) is None


@pytest.mark.parametrize(
    "case", ["no key", "no certificate", "missing", "not PEM", "another key", "locked"]
)
def test_a_certificate_that_cannot_be_used_is_refused(case: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, other = authority.server("a"), authority.server("b")
    locked = authority.client("c", key_password="secret")
    (tmp_path / "text").write_text("hello")
    files = {
        "no key": (own.certificate, None),
        "no certificate": (None, own.key),
        "missing": (tmp_path / "none", own.key),
        "not PEM": (tmp_path / "text", own.key),
        "another key": (own.certificate, other.key),
        "locked": (locked.certificate, locked.key),
    }
    certificate, key = (str(each) if each else None for each in files[case])

    with pytest.raises(ConfigError, match=r"--tls-(cert|key)"):
        read_tls(certificate, key)
