"""A certificate authority with server and client certificates for one run, as PEM files."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=825)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key (PKCS#8, readable by the owner only)."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates that are valid for this machine's loopback names only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Penstock embedded CA")
        self._certificate = self._self_signed()
        self.ca = _write(folder / "ca.pem", _pem(self._certificate), 0o644)

    def server(self, name: str) -> Certificate:
        """Create a certificate for a server on localhost, 127.0.0.1 and ::1."""
        return self._issue(name, ExtendedKeyUsageOID.SERVER_AUTH)

    def client(
        self, name: str, key_password: str | None = None, lifetime: timedelta = LIFETIME
    ) -> Certificate:
        """Create a certificate for a client with the principal CN=name; a negative lifetime expired."""
        return self._issue(name, ExtendedKeyUsageOID.CLIENT_AUTH, key_password, lifetime)

    def _self_signed(self) -> x509.Certificate:
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        return builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    def _issue(
        self,
        name: str,
        usage: x509.ObjectIdentifier,
        password: str | None = None,
        lifetime: timedelta = LIFETIME,
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._name, key.public_key(), lifetime)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        # A node of a cluster is a client of the others, so every certificate may be both.
        usages = list(dict.fromkeys([usage, ExtendedKeyUsageOID.CLIENT_AUTH]))
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        addresses = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))
        loopback = [x509.DNSName("localhost"), *map(x509.IPAddress, addresses)]
        builder = builder.add_extension(x509.SubjectAlternativeName(loopback), critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        pkcs8 = serialization.PrivateFormat.PKCS8
        key_pem = key.private_bytes(serialization.Encoding.PEM, pkcs8, encryption)
        return Certificate(
            _write(self.folder / f"{name}.pem", _pem(signed), 0o644),
            _write(self.folder / f"{name}.key", key_pem, 0o600),
        )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    lifetime: timedelta = LIFETIME,
) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc)
    until = now + lifetime
    # An hour back, because clocks in containers differ from the machine's.
    since = min(now, until) - timedelta(hours=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write(path: Path, content: bytes, mode: int) -> Path:
    path.unlink(missing_ok=True)
    path.touch(mode=mode)
    path.write_bytes(content)
    return path
