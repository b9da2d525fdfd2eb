"""Conversion of PEM files for the Java client: inline, so that a cluster needs no files.

The Java client supports PKCS#8 keys only, and on Java 17 none of the encryptions that OpenSSL writes
(PBES2), so every key is decrypted here.
"""

from __future__ import annotations

import re
from pathlib import Path

from penstock.errors import ConfigError

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def read_pem(key: str, location: str) -> str:
    """Read the file that a key names, or all files of a directory, like librdkafka."""
    path = Path(location).expanduser()
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    try:
        return "\n".join(
            file.read_text("utf-8", "replace")
            for file in files
            if file.is_file() or len(files) == 1
        )
    except OSError as error:
        reason = error.strerror
    raise ConfigError(f"{key}: cannot read {path}: {reason}; give the path of a PEM file")


def certificates(key: str, pem: str) -> str:
    """Return only the certificates of a PEM text: Java refuses anything else in it."""
    blocks = _CERTIFICATE.findall(pem)
    if not blocks:
        raise ConfigError(f"{key}: there is no certificate in it; allowed: PEM, BEGIN CERTIFICATE")
    return "\n".join(dict.fromkeys(blocks)) + "\n"


def private_key(key: str, pem: str, password: str) -> str:
    """Rewrite a private key of any PEM form as plain PKCS#8."""
    # Only a connection with a client certificate on the Java side pays for this import.
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415

    # OpenSSL ignores a password that an open key does not need; so does this.
    secret = password.encode() if password and "ENCRYPTED" in pem else None
    try:
        loaded = forms.load_pem_private_key(pem.encode(), secret)
    except TypeError:
        problem = "the key is encrypted and ssl.key.password is missing"
    except ValueError:
        problem = "the key does not open: ssl.key.password is wrong, or it is not a PEM key"
    else:
        plain = forms.NoEncryption()
        return loaded.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, plain).decode()
    raise ConfigError(f"{key}: {problem}")
