"""Where a database is, and the secret that opens it, kept apart from the first moment on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from pydantic import SecretStr

from penstock.config.secrets import MASK, mask
from penstock.errors import ConfigError

SCHEMES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mariadb",
    "sqlite": "sqlite",
}
OPTIONS = {
    "mariadb": (
        "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert", "ssl_verify_identity", "ssl_disabled"
    ),
    "sqlite": ("timeout",),
}  # fmt: skip
"""What may stand after the question mark; PostgreSQL's own library knows what it takes."""
_SECONDS = re.compile(r"\d+(\.\d+)?")
_TRUTH = {"true": True, "yes": True, "on": True, "1": True}
_TRUTH |= {"false": False, "no": False, "off": False, "0": False}
FORMS = "postgresql://user@host:5432/database, mariadb://user@host:3306/database or sqlite:///file"


@dataclass(frozen=True)
class DatabaseUser:
    """The component that uses a database, as messages name it, and the rights that it needs."""

    name: str
    needs: str


SINK = DatabaseUser(
    "the sink 'database'", "it creates and alters the table, and 'penstock_offsets'"
)


@dataclass(frozen=True)
class Address:
    """A database's address, safe to print; the password is a separate field.

    >>> address = Address.read("mariadb://app@db:3307/shop?ssl_ca=ca.pem")
    >>> address.kind, address.host, address.port, address.user, address.database, address.options
    ('mariadb', 'db', 3307, 'app', 'shop', {'ssl_ca': 'ca.pem'})
    """

    url: str
    kind: str
    password: SecretStr | None = field(default=None, repr=False)

    @classmethod
    def read(cls, url: str, password: SecretStr | None = None) -> Address:
        """Read an address that `without_password` has gone over."""
        return cls(url, SCHEMES[urlsplit(url).scheme], password)

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def host(self) -> str:
        """Return the server's name; this machine if none is given."""
        return self._parts.hostname or "localhost"

    @property
    def port(self) -> int | None:
        """Return the port, if one is given."""
        return self._parts.port

    @property
    def user(self) -> str | None:
        """Return the user, if one is given."""
        return unquote(self._parts.username) if self._parts.username else None

    @property
    def database(self) -> str:
        """Return the database's name; for SQLite the file."""
        return unquote(self._parts.path.removeprefix("/"))

    @property
    def options(self) -> dict[str, str]:
        """Return the options of the query string."""
        return dict(parse_qsl(self._parts.query))

    def masked(self, text: str) -> str:
        """Return the text without the password, however it came into it."""
        secret = self.password.get_secret_value() if self.password else ""
        return mask(text.replace(secret, MASK) if secret else text)


def truth(options: Mapping[str, str], name: str, default: bool) -> bool:
    """Return an option that is true or false.

    >>> truth({"ssl_disabled": "false"}, "ssl_disabled", default=True)
    False
    """
    if name not in options:
        return default
    if (value := _TRUTH.get(options[name].lower())) is None:
        raise ConfigError(f"{name!r} is {options[name]!r}; allowed: true, false")
    return value


def refuse_unknown(url: str) -> None:
    """Refuse an option in an address that would be ignored, such as a misspelled one of TLS.

    >>> refuse_unknown("mariadb://app@db/shop?ssl_cax=ca.pem")
    Traceback (most recent call last):
    ...
    ValueError: 'url' has the option 'ssl_cax'; allowed with mariadb: ssl_ca, ssl_cert, ...
    """
    parts = urlsplit(url)
    kind = SCHEMES[parts.scheme]
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if kind in OPTIONS and name not in OPTIONS[kind]:
            allowed = ", ".join(OPTIONS[kind])
            raise ValueError(f"'url' has the option {name!r}; allowed with {kind}: {allowed}")
        if not value:
            raise ValueError(f"'url' has the option {name!r} without a value")
        if name == "timeout" and kind == "sqlite" and not _SECONDS.fullmatch(value):
            raise ValueError(f"'timeout' is {value!r}; allowed: a number of seconds")


def without_password(url: str) -> tuple[str, str | None]:
    """Take the password out of an address, or say what is wrong with the address.

    >>> without_password("jdbc:postgres://app:hunter2@db/shop")
    ('postgresql://app@db/shop', 'hunter2')
    """
    parts = urlsplit(url.removeprefix("jdbc:"))
    if parts.scheme not in SCHEMES:
        raise ValueError(f"given {mask(url)!r}; allowed: {FORMS}")
    if parts.scheme != "sqlite" and not parts.path.strip("/"):
        raise ValueError(f"given {mask(url)!r}, which names no database; allowed: {FORMS}")
    if parts.scheme == "sqlite" and (parts.netloc or parts.path in ("", "/")):
        raise ValueError(
            f"given {mask(url)!r}; a file is sqlite:///folder/file.db, or sqlite:////folder/file.db "
            "from the root of the file system"
        )
    user, _, host = parts.netloc.rpartition("@")
    name, _, secret = user.partition(":")
    place = f"{name}@{host}" if name else host
    clean = (
        urlunsplit(("", place, *parts[2:])) if place else f"//{urlunsplit(('', '', *parts[2:]))}"
    )
    return f"{SCHEMES[parts.scheme]}:{clean}", unquote(secret) or None
