"""Hashes of passwords (scrypt) and of tokens (SHA-256: a token has 256 random bits)."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass
from secrets import token_bytes, token_urlsafe

from penstock.errors import ConfigError

_SHORTEST, _LONGEST = 8, 1000
_PREFIX = "pst_"


@dataclass(frozen=True)
class Cost:
    """The parameters of scrypt: 16 MB, and some tenths of a second."""

    n: int = 2**14
    r: int = 8
    p: int = 5


COST = Cost()


def hash_password(password: str, cost: Cost = COST) -> str:
    """Return the hash of a password, with its salt and cost.

    >>> stored = hash_password("correct horse", Cost(n=16))
    >>> verify_password("correct horse", stored), verify_password("battery", stored)
    (True, False)
    """
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise ConfigError(
            f"a password has {_SHORTEST} to {_LONGEST} characters; {len(password)} were given"
        )
    salt = token_bytes(16)
    digest = _digest(password, salt, cost)
    parts = (b64encode(salt).decode(), b64encode(digest).decode())
    return f"scrypt${cost.n}${cost.r}${cost.p}${parts[0]}${parts[1]}"


def verify_password(password: str, stored: str) -> bool:
    """Return whether this is the password of a hash; it takes the same time for any other one."""
    _, n, r, p, salt, digest = stored.split("$")
    given = _digest(password[:_LONGEST], b64decode(salt), Cost(int(n), int(r), int(p)))
    return hmac.compare_digest(given, b64decode(digest))


def needs_rehash(stored: str, cost: Cost = COST) -> bool:
    """Return whether a hash was made at another cost."""
    return not stored.startswith(f"scrypt${cost.n}${cost.r}${cost.p}$")


def new_token() -> str:
    """Return a new token; its prefix is what scanners of leaked secrets look for."""
    return _PREFIX + token_urlsafe(32)


def token_digest(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _digest(password: str, salt: bytes, cost: Cost) -> bytes:
    memory = 256 * cost.n * cost.r + 1024 * 1024
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=salt, n=cost.n, r=cost.r, p=cost.p, maxmem=memory, dklen=32,
    )  # fmt: skip
