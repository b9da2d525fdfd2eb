"""The address of a schema registry and who asks there, read from what the user gave."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from pydantic import SecretStr

from penstock.errors import ConfigError

Credentials = tuple[str, SecretStr]


def addresses(given: str) -> tuple[list[str], Credentials | None]:
    """Give the addresses without user and password, and the first user and password in them.

    >>> addresses("http://a:8081/, http://b:8081")
    (['http://a:8081', 'http://b:8081'], None)
    >>> addresses("https://app:hunter2@a")
    (['https://a'], ('app', SecretStr('**********')))
    """
    splits = [_checked(urlsplit(part.strip())) for part in given.split(",")]
    users = [
        credentials(unquote(s.username), unquote(s.password or "")) for s in splits if s.username
    ]
    return [_clean(split) for split in splits], next(iter(users), None)


def credentials(username: str | None, password: SecretStr | str | None) -> Credentials | None:
    """Give both, or nothing where neither is given."""
    if username is None and password is None:
        return None
    if not username or password is None:
        raise ConfigError("the registry needs both username and password, or neither")
    return username, password if isinstance(password, SecretStr) else SecretStr(password)


def _checked(split: SplitResult) -> SplitResult:
    if split.scheme in {"http", "https"} and split.hostname:
        return split
    raise ConfigError(
        f"registry address {_clean(split)!r}: allowed are http://HOST:PORT/PATH and https://..., "
        "several with commas between them"
    )


def _clean(split: SplitResult) -> str:
    host = split.netloc.rpartition("@")[2]
    return urlunsplit(split._replace(netloc=host, query="", fragment="")).rstrip("/")
