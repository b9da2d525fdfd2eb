"""The address of a database, as the sink `database` reads it."""

from __future__ import annotations

from pydantic import SecretStr

from penstock.errors import ConfigError
from penstock.sinks.database.address import Address, without_password


def checked_address(url: str, password: SecretStr | None) -> Address:
    """Return the address of a database, the password apart.

    >>> checked_address("sqlite:///shop.db", None).kind
    'sqlite'
    """
    try:
        clean, secret = without_password(url)
    except ValueError as error:
        raise ConfigError(str(error).removeprefix("Value error, ")) from None
    if secret is not None and password is not None:
        raise ConfigError("the password is in the address and in 'password': give it once")
    return Address.read(clean, SecretStr(secret) if secret is not None else password)
