"""The connection itself: TLS with an own authority, compressed replies, servers that are too slow."""

from __future__ import annotations

import datetime
import gzip
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.services.json_api import Answer, JsonApi
from tests.unit.imports.http_reading import import_all

from penstock.errors import ConfigError, TerminalError, TransientError


def certificate(folder: Path) -> ssl.SSLContext:
    """Return a server's context with a certificate for 127.0.0.1, which is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    host = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    (folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[JsonApi]:
    with JsonApi(lambda _: [{"id": 1}], certificate(tmp_path)) as started:
        yield started


def test_a_server_is_verified_with_the_given_authority(secure: JsonApi, tmp_path: Path) -> None:
    assert secure.url.startswith("https://")
    assert import_all({"url": secure.url, "ca": str(tmp_path / "ca.pem")}).ids == [1]


def test_a_server_of_an_unknown_authority_gets_no_request(secure: JsonApi) -> None:
    with pytest.raises(ConfigError, match="give the PEM file of its authority in 'ca'"):
        import_all({"url": secure.url, "auth": {"bearer": "s3cr3t-value-1"}})
    assert secure.requests == []


def test_https_is_never_left_for_http(secure: JsonApi, tmp_path: Path) -> None:
    secure.respond = lambda _: Answer("", 302, {"Location": secure.url.replace("https:", "http:")})
    with pytest.raises(TerminalError, match=r"a redirect .* leads to http://127\.0\.0\.1"):
        import_all({"url": secure.url, "ca": str(tmp_path / "ca.pem")})


def test_a_reply_that_is_compressed_is_read_within_the_limit(api: JsonApi) -> None:
    packed = gzip.compress(b'[{"id": 1}' + b" " * 100_000 + b"]")
    api.respond = lambda _: Answer(packed, headers={"Content-Encoding": "gzip"})
    assert import_all({"url": api.url}).ids == [1]
    with pytest.raises(TerminalError, match="larger than 50000 bytes"):
        import_all({"url": api.url, "max_bytes": 50_000})
    api.respond = lambda _: Answer(packed[:-9], headers={"Content-Encoding": "gzip"})
    with pytest.raises(TransientError, match="compressed body is not complete"):
        import_all({"url": api.url})
    api.respond = lambda _: Answer(b"[]", headers={"Content-Encoding": "gzip"})
    with pytest.raises(TerminalError, match="is not gzip"):
        import_all({"url": api.url})
    api.respond = lambda _: Answer(b"[]", headers={"Content-Encoding": "br"})
    with pytest.raises(TerminalError, match="has the encoding 'br'"):
        import_all({"url": api.url})


def test_a_server_that_does_not_reply_is_asked_again_later(api: JsonApi) -> None:
    is_over = Event()
    api.respond = lambda _: is_over.wait(60) and []
    with pytest.raises(TransientError, match=r"cannot be reached: .*timed out"):
        import_all({"url": api.url, "timeout": "200ms"})
    is_over.set()
