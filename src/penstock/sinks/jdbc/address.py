"""Where a database is, and the secret that opens it, kept apart from the first moment on."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from pydantic import SecretStr

from penstock.config.secrets import MASK, mask

SCHEMES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mariadb",
    "sqlite": "sqlite",
}
FORMS = "postgresql://user@host:5432/database, mariadb://user@host:3306/database or sqlite:///file"


@dataclass(frozen=True)
class Address:
    """A database's address, safe to print; the password is beside it.

    >>> found = Address.read("mariadb://app@db:3307/shop?ssl_ca=ca.pem")
    >>> found.kind, found.host, found.port, found.user, found.database, found.options
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
        """The server's name; this machine where none is given."""
        return self._parts.hostname or "localhost"

    @property
    def port(self) -> int | None:
        """The port, if one is given."""
        return self._parts.port

    @property
    def user(self) -> str | None:
        """The user, if one is given."""
        return unquote(self._parts.username) if self._parts.username else None

    @property
    def database(self) -> str:
        """The database's name; for SQLite the file."""
        return unquote(self._parts.path.removeprefix("/"))

    @property
    def options(self) -> dict[str, str]:
        """What stands after the question mark."""
        return dict(parse_qsl(self._parts.query))

    def masked(self, text: str) -> str:
        """Return the text without the password, however it came into it."""
        secret = self.password.get_secret_value() if self.password else ""
        return mask(text.replace(secret, MASK) if secret else text)


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
