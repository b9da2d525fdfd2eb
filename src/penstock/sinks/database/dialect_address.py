"""Addresses of databases with a session or client of their own here, and of SQLAlchemy's dialects."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import SecretStr

from penstock.config.secrets import mask
from penstock.sinks.database.address import SCHEMES, Address, refuse_unknown, without_password

DIALECT = "sqlalchemy"
"""The kind of an address that only SQLAlchemy knows."""
_DIALECT = re.compile(r"[a-z][a-z0-9_]*(\+[a-z][a-z0-9_]*)?")
_FORMS = (
    "postgresql://user@host:5432/database, mariadb://user@host:3306/database, sqlite:///file, or "
    "dialect+driver://user@host/database for a dialect of SQLAlchemy"
)


def split_url(url: str) -> tuple[str, str | None]:
    """Return an address without its password, and the password.

    >>> split_url("mariadb://app:hunter2@db/shop"), split_url("duckdb:///data.db")
    (('mariadb://app@db/shop', 'hunter2'), ('duckdb:///data.db', None))
    """
    url = url.removeprefix("jdbc:")
    scheme, separator, rest = url.partition("://")
    if scheme in SCHEMES:
        clean, secret = without_password(f"{scheme}{separator}{rest}")
        refuse_unknown(clean)
        return clean, secret
    if not separator or not _DIALECT.fullmatch(scheme):
        raise ValueError(f"given {mask(url)!r}; allowed: {_FORMS}")
    return _dialect_url(url)


def _dialect_url(url: str) -> tuple[str, str | None]:
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    name, _, secret = user.partition(":")
    place = f"{name}@{host}" if name else host
    clean = urlunsplit(("", place, *parts[2:])) if place else f"//{parts.path}"
    if not place and parts.query:
        clean += f"?{parts.query}"
    return f"{parts.scheme}:{clean}", unquote(secret) or None


def read_address(url: str, password: SecretStr | None) -> Address:
    """Return the address of a url that `split_url` has read."""
    if urlsplit(url).scheme in SCHEMES:
        return Address.read(url, password)
    return Address(url, DIALECT, password)
