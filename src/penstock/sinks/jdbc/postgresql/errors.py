"""What PostgreSQL's errors mean for the engine: come back later, a row is bad, or the settings are."""

from __future__ import annotations

import psycopg

from penstock.errors import ConfigError, PenstockError, RefusedError, TransientError
from penstock.sinks.jdbc.address import Address

_REFUSED = ("22", "23")
_AWAY = ("08", "40", "53", "55P03", "57", "58", "25P03")
_SETTINGS = ("28", "3D", "3F", "42501", "42P01", "25006")
# A failure to connect has no SQLSTATE, only words.
_WORDS = (
    "password authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "does not support SSL",
    "certificate verify failed",
)


def told(error: Exception, address: Address) -> PenstockError | None:
    """Return the error as one of ours, without a secret; None where it is a mistake of this code."""
    if not isinstance(error, psycopg.Error):
        return None
    said = address.masked(_words_of(error))
    state = error.sqlstate or ""
    if state.startswith(_REFUSED):
        return RefusedError(said)
    if state.startswith(_SETTINGS) or (not state and any(word in said for word in _WORDS)):
        return ConfigError(
            f"the sink 'jdbc' cannot work with {address.url}: {said}; check user, password, database, "
            "schema and the user's rights (it creates and alters the table, and 'penstock_offsets')"
        )
    if state.startswith(_AWAY) or isinstance(
        error, (psycopg.OperationalError, psycopg.InterfaceError)
    ):
        return TransientError(f"{address.url} is away or busy: {said}")
    return None


def _words_of(error: psycopg.Error) -> str:
    """Return what the server says, on one line and without the statement."""
    found = (error.diag.message_primary, error.diag.message_detail, error.diag.context)
    said = "; ".join(part for part in found if part)
    return said or " ".join(str(error).split())
