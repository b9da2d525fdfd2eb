"""SQL over the rows of one payload, in SQLite's memory: no file, no other table, a time limit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.flows.error_codes import Fault
from penstock.flows.expressions.value_text import json_of, kind_of

_MOST_COLUMNS = 1000
_STEPS = 10_000
_ALLOWED = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
# What SQLite says of a query whatever its columns are.
_NEVER_VALID = (
    "syntax error",
    "incomplete input",
    "unrecognized token",
    "not authorized",
    "one statement at a time",
    "no such table",
    "no such function",
    "wrong number of arguments",
    "Binding ",
)
_MOST_BITS = 63
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
# SQLITE_LIMIT_LENGTH: the largest text or blob.
_LIMIT_LENGTH, _LONGEST = 0, 64 * 2**20


class PayloadRows:
    """Runs one query over the table `rows`; a new table for each payload."""

    def __init__(self, query: str, most: int, timeout: float) -> None:
        self._query = query
        self._most = most
        self._timeout = timeout

    def selected(self, document: Any, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of the query.

        >>> rows = PayloadRows("SELECT sum(n) AS total FROM rows WHERE n > :low", 10, 5)
        >>> rows.selected([{"n": 1}, {"n": 2}, {"n": 3}], {"low": 1})
        [{'total': 5}]
        """
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            _fill(connection, _objects(document))
            return self._run(connection, parameters)
        except sqlite3.Error as error:
            raise Fault("DATABASE:REFUSED", f"the query over the payload: {error}") from None
        finally:
            connection.close()

    def _run(
        self, connection: sqlite3.Connection, parameters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        _only_reading(connection)
        if hasattr(connection, "setlimit"):  # from Python 3.11 on
            connection.setlimit(_LIMIT_LENGTH, _LONGEST)
        until = time.monotonic() + self._timeout
        connection.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS)
        try:
            cursor = connection.execute(self._query, {k: _stored(v) for k, v in parameters.items()})
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchmany(self._most)]
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                text = f"the query takes longer than {self._timeout:g} s"
                raise Fault("CORE:TIMEOUT", text) from None
            raise


def check_query(query: str, parameters: Iterable[str]) -> None:
    """Raise ValueError for a query that no payload makes valid; its columns are not known before.

    >>> check_query("SELECT id FROM rows WHERE id = :id", ["id"])
    >>> check_query("DELETE FROM rows", [])
    Traceback (most recent call last):
    ValueError: not authorized
    """
    connection = sqlite3.connect(":memory:")
    try:
        _fill(connection, [])
        _only_reading(connection)
        connection.execute(f"EXPLAIN {query}", dict.fromkeys(parameters))
    except (sqlite3.Error, sqlite3.Warning) as error:
        if any(part in str(error) for part in _NEVER_VALID):
            raise ValueError(str(error)) from None
    finally:
        connection.close()


def _only_reading(connection: sqlite3.Connection) -> None:
    connection.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
    )


def _objects(document: Any) -> list[dict[str, Any]]:
    rows = [document] if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise Fault("DATABASE:REFUSED", f"rows are a list of objects, given {kind_of(document)}")
    for row in rows:
        if not isinstance(row, dict):
            raise Fault("DATABASE:REFUSED", f"rows are objects, given {kind_of(row)}")
    return rows


def _fill(connection: sqlite3.Connection, rows: list[dict[str, Any]]) -> None:
    names: dict[str, str] = {}
    folded = [_folded(row) for row in rows]
    for row in rows:
        for name in row:
            names.setdefault(name.translate(_LOWER), name)
    if len(names) > _MOST_COLUMNS:
        raise Fault("DATABASE:REFUSED", f"{len(names)} columns; allowed are {_MOST_COLUMNS}")
    columns = list(names.values()) or ["value"]
    quoted = ", ".join('"' + name.replace('"', '""').replace("\0", "") + '"' for name in columns)
    connection.execute(f"CREATE TABLE rows ({quoted})")
    places = ", ".join("?" for _ in columns)
    keys = list(names) or ["value"]
    values = ([_stored(row.get(key)) for key in keys] for row in folded)
    connection.executemany(f"INSERT INTO rows VALUES ({places})", values)  # noqa: S608 - only places


def _folded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row by names as SQLite compares them: the case of ASCII letters does not count."""
    folded = {name.translate(_LOWER): value for name, value in row.items()}
    if len(folded) < len(row):
        twice = [
            name for name in row if name.translate(_LOWER) != name and name.translate(_LOWER) in row
        ]
        raise Fault(
            "DATABASE:REFUSED",
            f"a row has {twice[0] if twice else 'a name'!r:.60} in two forms that differ in case alone; "
            "columns of SQL do not: rename one of them with 'map' before",
        )
    return folded


def _stored(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json_of(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return str(value)
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    return json_of(value).strip('"')
