"""Tables that a script creates for its jobs, by DolphinDB's type names; tables to JSON text and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from penstock.compat.dolphindb.dolphindb_arguments import anything, checked, refusal
from penstock.compat.dolphindb.dolphindb_values import frame, to_numpy
from penstock.errors import ConfigError, FormatError, nearest
from penstock.formats import find_format
from penstock.formats.dolphindb.dolphindb_types import BY_NAME
from penstock.formats.format_values import Shape, loaded, shape

if TYPE_CHECKING:
    from pandas import DataFrame

    from penstock.jobs import Table

_TYPES = {
    "BOOL": "boolean", "CHAR": "tinyint", "SHORT": "smallint", "INT": "int", "LONG": "bigint",
    "FLOAT": "float", "DOUBLE": "double", "STRING": "string", "SYMBOL": "string", "BLOB": "binary",
    "DATE": "date", "DATETIME": "timestamp_ntz", "DATEHOUR": "timestamp_ntz",
    "TIMESTAMP": "timestamp_ntz", "NANOTIMESTAMP": "timestamp_ntz", "UUID": "string",
    "IPADDR": "string", "INT128": "string",
}  # fmt: skip
_DIGITS = {"DECIMAL32": 9, "DECIMAL64": 18, "DECIMAL128": 38}
# Numpy's units of DolphinDB's dates and timestamps.
_MOMENTS = {
    "DATE": "M8[D]",
    "MONTH": "M8[M]",
    "DATEHOUR": "M8[h]",
    "DATETIME": "M8[s]",
    "TIMESTAMP": "M8[ms]",
    "NANOTIMESTAMP": "M8[ns]",
}
_MOMENT = re.compile(
    r"([0-9]{4})(?P<dash>[.-])([0-9]{2})"
    r"(?:(?P=dash)([0-9]{2})(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.]([0-9]+))?)?)?)?)?"
)
_EARLIEST = "0000-01-01T00:00:00.000000000"
# The moments that fit into 64 bits of nanoseconds.
_FIRST_NANOSECOND, _LAST_NANOSECOND = (
    "1677-09-21T00:12:43.145224193",
    "2262-04-11T23:47:16.854775807",
)
# How much of such a text is of each type.
_LENGTHS = {
    "MONTH": 7,
    "DATE": 10,
    "DATEHOUR": 13,
    "DATETIME": 19,
    "TIMESTAMP": 23,
    "NANOTIMESTAMP": 29,
}
_PLAIN = ("BOOL", "CHAR", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "STRING", "SYMBOL")
_PARSED = (*_PLAIN, *_MOMENTS)


@checked()
def table(names: Sequence[str], types: Sequence[str]) -> Table:
    """Create an empty table in memory.

    >>> table(["id", "price"], ["INT", "DECIMAL32(2)"]).columns
    'id int, price decimal(9,2)'
    """
    return _made(names, types)


@checked()
def streamTable(names: Sequence[str], types: Sequence[str]) -> Table:
    """Create an empty table in memory that jobs append to."""
    return _made(names, types)


@checked()
def keyedTable(keys: str | Sequence[str], names: Sequence[str], types: Sequence[str]) -> Table:
    """Create an empty table in memory that keeps the newest row of each key.

    >>> keyedTable("id", ["id", "msg"], ["INT", "STRING"]).key
    ['id']
    """
    made = _made(names, types, key=keys)
    for key in made.key:
        if key not in names:
            raise ConfigError(f"the key {key!r} is not a column; {nearest(key, list(names))}")
    return made


def _made(names: Sequence[str], types: Sequence[str], key: str | Sequence[str] = ()) -> Table:
    # They bring Spark along.
    from penstock.jobs import Table  # noqa: PLC0415
    from penstock.pipeline.names import quoted  # noqa: PLC0415

    if len(names) != len(types):
        raise ConfigError(
            f"{len(names)} names and {len(types)} types were given; each column has one of both"
        )
    columns = (f"{quoted(name)} {_ddl(type_)}" for name, type_ in zip(names, types, strict=True))
    return Table(", ".join(columns), key=key)


def _ddl(given: Any) -> str:
    name = str(given).upper().strip()
    if name in _TYPES:
        return _TYPES[name]
    if (match := re.fullmatch(r"(DECIMAL\d+)\((\d+)\)", name)) and match[1] in _DIGITS:
        return f"decimal({_DIGITS[match[1]]},{match[2]})"
    known = [*_TYPES, *(f"{one}(scale)" for one in _DIGITS)]
    raise ConfigError(f"type {given!r} is not supported; {nearest(name, known)}")


@checked(table=anything)
def toStdJson(table: Any) -> str:
    """Return the JSON text of a table, one object for each row; other values as `produce` writes them.

    >>> import pandas as pd
    >>> toStdJson(pd.DataFrame({"c1": [1, 2], "c2": ["a", "b"]}))
    '[{"c1": 1,"c2": "a"},{"c1": 2,"c2": "b"}]'
    """
    try:
        document = orjson.loads(find_format("json").encode(table))
    except FormatError as error:
        raise FormatError(f"table: {error}") from error
    if shape(table) is Shape.TABLE:
        rows = zip(*document.values(), strict=True)
        document = [dict(zip(document, row, strict=True)) for row in rows]
    return json.dumps(document, separators=(",", ": "), ensure_ascii=False)


def _check_column(name: str, given: Any) -> None:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise refusal(name, given, "a list of JSON texts")


@checked(column=_check_column, schema=anything)
def parseJsonTable(column: Iterable[Any], schema: Any) -> DataFrame:
    """Return a table of JSON objects, one text for each row; missing fields are null.

    Numbers are rounded to FLOAT and DOUBLE. What a type cannot hold is refused: a time of day for DATE.

    `schema` is a table with the columns `name` and `type`, or a mapping; types by DolphinDB's names.

    >>> parseJsonTable(['{"id": 1, "date": "2024.08.30"}'], {"date": "DATE", "id": "INT"})
            date  id
    0 2024-08-30   1
    """
    wanted = _types_of(schema)
    rows = [_object(number, text) for number, text in enumerate(column)]
    return frame({n: _column(n, kind, [row.get(n) for row in rows]) for n, kind in wanted.items()})


def _types_of(given: Any) -> dict[str, str]:
    if loaded(given, "pandas", "DataFrame") and {"name", "type"} <= set(given.columns):
        given = dict(zip(given["name"], given["type"], strict=True))
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"a schema of {type(given).__name__} is not allowed; allowed: a DataFrame with the columns "
            "name and type, or a mapping, e.g. {'id': 'INT'}"
        )
    for name, kind in given.items():
        if str(kind).upper() not in _PARSED:
            raise ConfigError(
                f"column {name!r}: type {kind!r} is unknown here; {nearest(str(kind).upper(), _PARSED)}"
            )
    return {str(name): str(kind).upper() for name, kind in given.items()}


def _object(number: int, text: Any) -> Mapping[str, Any]:
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise FormatError(f"column: row {number} is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise FormatError(f"column: row {number} is not a JSON object, but {type(parsed).__name__}")
    return parsed


def _column(name: str, kind: str, values: list[Any]) -> Any:
    try:
        if kind in _MOMENTS:
            texts = ["NaT" if value is None else _iso(value, kind) for value in values]
            return np.array(texts, dtype=_MOMENTS[kind])
        return _plain(kind, values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"column {name!r} of type {kind}: {error}") from error


def _plain(kind: str, values: list[Any]) -> Any:
    """Return a column of no dates: numbers are rounded to FLOAT and DOUBLE, and nothing is cut."""
    type_ = BY_NAME[kind].arrow
    if pa.types.is_integer(type_):
        for value in values:
            if type(value) is float and not value.is_integer():
                raise ValueError(f"{value!r} is not a whole number")
    if not pa.types.is_floating(type_):
        return to_numpy(pa.array(values, type_))
    # Arrow refuses whole numbers that it would have to round.
    numbers = [float(value) if type(value) is int else value for value in values]
    column = to_numpy(pa.array(numbers, type_))
    if (too_large := np.isinf(column)).any():
        raise ValueError(f"{values[int(too_large.argmax())]!r} is too large")
    return column


def _iso(text: Any, kind: str) -> str:
    """Return DolphinDB's 2024.08.30T12:00:00.123 as numpy needs it, to the unit of the type.

    >>> _iso("2024.08.30 12:00:00.1", "TIMESTAMP"), _iso("2024.08.30T00:00", "DATE")
    ('2024-08-30T12:00:00.100', '2024-08-30')
    """
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is not text")
    if not text:
        return "NaT"
    if not (match := _MOMENT.fullmatch(text)):
        raise ValueError(f"{text!r} is not a time without a zone, as 2024.08.30T12:00:00.123")
    year, _, month, day, hour, minute, second, fraction = match.groups(default="00")
    clock = f"{hour}:{minute}:{second}.{fraction.rstrip('0'):0<9}"
    whole = f"{year}-{month}-{day if match[4] else '01'}T{clock}"
    length = _LENGTHS[kind]
    if whole[length:] != _EARLIEST[length:]:
        raise ValueError(f"{text!r} is finer than the type")
    if kind == "NANOTIMESTAMP" and not _FIRST_NANOSECOND <= whole <= _LAST_NANOSECOND:
        raise ValueError(f"{text!r} is not in {_FIRST_NANOSECOND} .. {_LAST_NANOSECOND}")
    return whole[:length]
