"""Settings of the developer's machine must not reach these tests; certificates are made for them."""

import datetime
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID


@pytest.fixture(autouse=True)
def _own_settings(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("PENSTOCK_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@dataclass(frozen=True)
class Pem:
    """A certificate and its key, in the forms that people have them."""

    certificate: Path
    key: Path
    encrypted_key: Path
    old_key: Path
    old_encrypted_key: Path


@pytest.fixture(scope="session")
def pem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pem")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    new, old = forms.PrivateFormat.PKCS8, forms.PrivateFormat.TraditionalOpenSSL
    plain, locked = forms.NoEncryption(), forms.BestAvailableEncryption(b"hunter2")

    def file(name, content):
        (folder / name).write_bytes(content)
        return folder / name

    def key_file(name, form, lock):
        return file(name, key.private_bytes(forms.Encoding.PEM, form, lock))

    return Pem(
        file("certificate.pem", _certificate(key).public_bytes(forms.Encoding.PEM)),
        key_file("key.pem", new, plain),
        key_file("encrypted.pem", new, locked),
        key_file("old.pem", old, plain),
        key_file("old-encrypted.pem", old, locked),
    )


def _certificate(key):
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "penstock")])
    today = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
