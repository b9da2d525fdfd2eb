"""Finds the database for an address. The drivers are extras: each is loaded only when it is needed."""

from __future__ import annotations

from importlib import import_module

from penstock.errors import missing_extra
from penstock.sinks.jdbc.address import Address
from penstock.sinks.jdbc.database import Database

_CLASSES = {"postgresql": "PostgreSQL", "mariadb": "MariaDB", "sqlite": "SQLite"}


def database(address: Address) -> Database:
    """Return the database at this address.

    >>> type(database(Address.read("sqlite:///shop.db"))).__name__
    'SQLite'
    """
    try:
        module = import_module(f"penstock.sinks.jdbc.{address.kind}.database")
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, f"the sink 'jdbc' with {address.kind}") from None
    made: Database = getattr(module, _CLASSES[address.kind])(address)
    return made
