"""Encryption of single values: AES-256-GCM, bound to the deployment that they belong to."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from secrets import token_bytes
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from penstock.config.secrets import remember_secret
from penstock.control.secrets.key_file import key_id
from penstock.errors import ConfigError, SetupError

SEALED = re.compile(r"\$\{sealed:([A-Za-z0-9_=-]+)\}")
"""A value that is encrypted; it is a whole string, never a part of one."""
_ID, _NONCE = 4, 12


class Sealer:
    """Encrypts values of deployments with the first key, decrypts with any.

    >>> sealer = Sealer([bytes(32)])
    >>> sealed = sealer.seal("orders", "hunter2")
    >>> sealed.startswith("${sealed:"), sealer.unseal("orders", sealed)
    (True, 'hunter2')
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._newest = key_id(keys[0])
        self._keys = {key_id(key): AESGCM(key) for key in keys}

    def seal(self, deployment: str, value: Any) -> str:
        """Return a text or a number as a sealed text."""
        nonce = token_bytes(_NONCE)
        plain = json.dumps(value).encode()
        secret = self._keys[self._newest].encrypt(nonce, plain, deployment.encode())
        return f"${{sealed:{urlsafe_b64encode(self._newest + nonce + secret).decode()}}}"

    def unseal(self, deployment: str, text: str, *, is_secret: bool = True) -> Any:
        """Return the value of a sealed text of this deployment.

        A secret is masked in messages from now on; a record is not, which may be large or a single word.
        """
        data = self._data(text)
        cipher = self._keys.get(data[:_ID])
        if cipher is None:
            raise SetupError(
                f"a secret of {deployment!r} is encrypted with a key that is not in the key file; copy "
                "the file from the server, or restore it from a backup"
            )
        nonce, secret = data[_ID : _ID + _NONCE], data[_ID + _NONCE :]
        try:
            plain = cipher.decrypt(nonce, secret, deployment.encode())
        except (InvalidTag, ValueError):
            raise ConfigError(
                f"a secret of {deployment!r} cannot be decrypted: it belongs to another deployment, or "
                "was changed; give its value again"
            ) from None
        value = json.loads(plain)
        if is_secret:
            remember_secret(value)
        return value

    def is_current(self, text: str) -> bool:
        """Return whether a sealed text is encrypted with the newest key."""
        return self._data(text)[:_ID] == self._newest

    @staticmethod
    def _data(text: str) -> bytes:
        match = SEALED.fullmatch(text)
        try:
            return urlsafe_b64decode(match[1]) if match else b""
        except ValueError:
            return b""


def is_sealed(value: Any) -> bool:
    """Return whether a value is a sealed text."""
    return isinstance(value, str) and SEALED.fullmatch(value) is not None
