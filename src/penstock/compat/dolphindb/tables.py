"""Tables that a script makes for its jobs: columns by DolphinDB's type names, rows in memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, nearest

if TYPE_CHECKING:
    from penstock.jobs import Table

_TYPES = {
    "BOOL": "boolean", "CHAR": "tinyint", "SHORT": "smallint", "INT": "int", "LONG": "bigint",
    "FLOAT": "float", "DOUBLE": "double", "STRING": "string", "SYMBOL": "string", "BLOB": "binary",
    "DATE": "date", "DATETIME": "timestamp_ntz", "DATEHOUR": "timestamp_ntz",
    "TIMESTAMP": "timestamp_ntz", "NANOTIMESTAMP": "timestamp_ntz", "UUID": "string",
    "IPADDR": "string", "INT128": "string",
}  # fmt: skip
_DIGITS = {"DECIMAL32": 9, "DECIMAL64": 18, "DECIMAL128": 38}


def table(names: Sequence[str], types: Sequence[str]) -> Table:
    """Make an empty table in memory.

    >>> table(["id", "price"], ["INT", "DECIMAL32(2)"]).columns
    'id int, price decimal(9,2)'
    """
    return _made(names, types)


def streamTable(names: Sequence[str], types: Sequence[str]) -> Table:
    """Make an empty table in memory that jobs append to.

    >>> len(streamTable(["date", "id", "msg"], ["DATE", "INT", "STRING"]))
    0
    """
    return _made(names, types)


def keyedTable(keys: str | Sequence[str], names: Sequence[str], types: Sequence[str]) -> Table:
    """Make an empty table in memory that keeps the newest row of each key.

    >>> keyedTable("id", ["id", "msg"], ["INT", "STRING"]).key
    ['id']
    """
    made = _made(names, types, key=keys)
    for key in made.key:
        if key not in names:
            raise ConfigError(f"the key {key!r} is no column; {nearest(key, list(names))}")
    return made


def _made(names: Sequence[str], types: Sequence[str], key: str | Sequence[str] = ()) -> Table:
    from penstock.jobs import Table  # noqa: PLC0415 - it brings Spark along

    return Table(_columns(names, types), key=key)


def _columns(names: Sequence[str], types: Sequence[str]) -> str:
    if len(names) != len(types):
        raise ConfigError(
            f"{len(names)} names and {len(types)} types were given; each column has one of both"
        )
    return ", ".join(f"`{name}` {_ddl(type_)}" for name, type_ in zip(names, types, strict=True))


def _ddl(given: Any) -> str:
    name = str(given).upper().strip()
    if name in _TYPES:
        return _TYPES[name]
    if (found := re.fullmatch(r"(DECIMAL\d+)\((\d+)\)", name)) and found[1] in _DIGITS:
        return f"decimal({_DIGITS[found[1]]},{found[2]})"
    known = [*_TYPES, *(f"{one}(scale)" for one in _DIGITS)]
    raise ConfigError(f"type {given!r} is unknown here; {nearest(name, known)}")
