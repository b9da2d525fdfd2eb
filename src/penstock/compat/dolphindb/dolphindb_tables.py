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
            texts = ["NaT" if value is None else _iso(value) for value in values]
            return np.array(texts, dtype=_MOMENTS[kind])
        return to_numpy(pa.array(values, BY_NAME[kind].arrow))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"column {name!r} of type {kind}: {error}") from error


def _iso(text: Any) -> str:
    """Return DolphinDB's 2024.08.30T12:00:00.123 with dashes in the date, as numpy needs it."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is not text")
    day, *clock = text.replace(" ", "T").split("T")
    return "T".join([day.replace(".", "-"), *clock])
