"""Decides by the name of a setting whether its value is a secret: a password, a key, a token."""

from __future__ import annotations

import re
from functools import lru_cache

# Any of these words anywhere in a name, unless the name ends in what only describes the secret.
_WORDS = (
    "passwd", "passcode", "pwd", "secrets", "tokens", "credential", "credentials", "authorization",
    "jaas", "signature",
)  # fmt: skip
# These also at the end of a word, as in dbpassword.
_ENDINGS = (
    "password", "passphrase", "secret", "token", "apikey", "accesskey", "accountkey", "secretkey",
    "privatekey",
)  # fmt: skip
# `key` alone is an ordinary word: the key of a record, a primary key.
_KINDS_OF_KEY = (
    "access", "account", "api", "decryption", "encryption", "keystore", "license", "master", "private",
    "secret", "service", "shared", "signing", "sse", "storage", "subscription",
)  # fmt: skip
_PHRASES = (
    "key pem", "connection string", "oauthbearer config", "oauthbearer extensions", "auth user info",
)  # fmt: skip
_DESCRIBES = (
    "algorithm", "bits", "class", "count", "dir", "directory", "enable", "enabled", "endpoint",
    "endpoints", "expiry", "file", "folder", "format", "id", "ids", "length", "lifetime", "limit",
    "location", "max", "method", "min", "mechanism", "ms", "name", "names", "parameter", "path",
    "property", "provider", "providers", "seconds", "size", "source", "store", "type", "uri", "url",
    "urls",
)  # fmt: skip
_SECRET = re.compile(
    rf"(?<!\S)(?:{'|'.join(_WORDS)}|(?:{'|'.join(_KINDS_OF_KEY)}) keys?|{'|'.join(_PHRASES)})(?!\S)"
    rf"|(?:{'|'.join(_ENDINGS)})(?!\S)"
)
HINTS = ("key", "connection", "oauthbearer", "auth", *_WORDS, *_ENDINGS)
"""One of these is in every name of a secret, in lower case: a text without any has no such name."""
# Names of secrets whose last word is one of those that only describe: an AppRole's secret id.
_SECRET_AFTER_ALL = ("secret id", "access key id")
_CASES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST = 500
# A person has named the transform, and says with that what it does: maskPassword.
_ALIAS = re.compile(r"^(?:transforms|predicates)\.[^.]+\.")


def is_secret_key(name: str) -> bool:
    """Return whether the value under this name must never be shown.

    >>> is_secret_key("sasl.password"), is_secret_key("fs.s3a.secret.key"), is_secret_key("AccountKey")
    (True, True, True)
    >>> is_secret_key("sasl.username"), is_secret_key("sasl.oauthbearer.token.endpoint.url")
    (False, False)
    >>> is_secret_key("transforms.maskPassword.fields"), is_secret_key("transforms.a.password")
    (False, True)
    """
    # The end decides: what comes before it may be a text of any length without a blank.
    return _is_secret(_ALIAS.sub("", name)[-_LONGEST:])


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    words = re.sub(r"[^a-z0-9]+", " ", _CASES.sub(" ", name).lower()).strip()
    if words.endswith(_SECRET_AFTER_ALL):
        return True
    return bool(_SECRET.search(words)) and words.rpartition(" ")[2] not in _DESCRIBES
