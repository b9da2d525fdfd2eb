"""Certificates made for the run let a client trust the server, and the server the client."""

from __future__ import annotations

import contextlib
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest

from penstock.embedded.certificates import Authority


def server_context(authority: Authority, *, ask_client: bool = False) -> ssl.SSLContext:
    made = authority.server("node-1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    if ask_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.ca)
    return context


def talk(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """Send a word from server to client; the certificate's subject of the client is the word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(ssl.SSLError):
                secure = server.wrap_socket(connection, server_side=True)
                peer = secure.getpeercert() or {}
                secure.sendall(str(peer.get("subject", "none")).encode())
                secure.close()

        threading.Thread(target=serve, daemon=True).start()
        with (
            socket.create_connection(listener.getsockname(), timeout=10) as raw,
            client.wrap_socket(raw, server_hostname=name) as secure,
        ):
            return secure.recv(1000)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_client_that_knows_the_ca_trusts_the_server(tmp_path: Path, name: str) -> None:
    authority = Authority(tmp_path)
    client = ssl.create_default_context(cafile=authority.ca)
    assert talk(server_context(authority), client, name) == b"none"


def test_a_client_with_another_ca_does_not(tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    client = ssl.create_default_context(cafile=other.ca)
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(server_context(Authority(tmp_path)), client, "localhost")


def test_a_client_certificate_with_a_key_password_is_known_to_the_server(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    made = authority.client("alice", "geheim")
    client = ssl.create_default_context(cafile=authority.ca)
    client.load_cert_chain(made.certificate, made.key, "geheim")
    assert b"alice" in talk(server_context(authority, ask_client=True), client, "localhost")


def test_keys_are_pkcs8_and_for_their_owner_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    plain, locked = authority.client("a"), authority.client("b", "geheim")
    assert plain.key.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert locked.key.read_text().startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert stat.S_IMODE(plain.key.stat().st_mode) == 0o600
