"""Two functions of DolphinDB itself that the documented scripts use and Python lacks: JSON of tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from penstock.compat.dolphindb.values import frame, to_numpy
from penstock.errors import ConfigError, FormatError, nearest
from penstock.formats import find_format
from penstock.formats.dolphindb.types import BY_NAME
from penstock.formats.values import Shape, loaded, shape

if TYPE_CHECKING:
    from pandas import DataFrame

# How numpy counts what DolphinDB writes as a date or a moment.
_MOMENTS = {
    "DATE": "M8[D]",
    "MONTH": "M8[M]",
    "DATEHOUR": "M8[h]",
    "DATETIME": "M8[s]",
    "TIMESTAMP": "M8[ms]",
    "NANOTIMESTAMP": "M8[ns]",
}
_PLAIN = ("BOOL", "CHAR", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "STRING", "SYMBOL")
_TYPES = (*_PLAIN, *_MOMENTS)


def toStdJson(table: Any) -> str:
    """JSON text of a table, one object for each row; anything else as `produce` writes it.

    >>> import pandas as pd
    >>> toStdJson(pd.DataFrame({"c1": [1, 2], "c2": ["a", "b"]}))
    '[{"c1": 1,"c2": "a"},{"c1": 2,"c2": "b"}]'
    """
    document = orjson.loads(find_format("json").encode(table))
    if shape(table) is Shape.TABLE:
        rows = zip(*document.values(), strict=True)
        document = [dict(zip(document, row, strict=True)) for row in rows]
    return json.dumps(document, separators=(",", ": "), ensure_ascii=False)


def parseJsonTable(column: Iterable[Any], schema: Any) -> DataFrame:
    """A table of JSON objects, one text for each row; what a row lacks is null.

    `schema` is a table with the columns `name` and `type`, or a mapping; types by DolphinDB's names.

    >>> parseJsonTable(['{"id": 1, "date": "2024.08.30"}'], {"date": "DATE", "id": "INT"})
            date  id
    0 2024-08-30   1
    """
    wanted = _schema(schema)
    rows = [_row(number, text) for number, text in enumerate(column)]
    return frame({n: _column(n, kind, [row.get(n) for row in rows]) for n, kind in wanted.items()})


def _schema(given: Any) -> dict[str, str]:
    if loaded(given, "pandas", "DataFrame"):
        given = dict(zip(given["name"], given["type"], strict=True))
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"a schema of {type(given).__name__} is not allowed; allowed: a DataFrame with the columns "
            "name and type, or a mapping, e.g. {'id': 'INT'}"
        )
    for name, kind in given.items():
        if str(kind).upper() not in _TYPES:
            raise ConfigError(
                f"column {name!r}: type {kind!r} is unknown here; {nearest(str(kind).upper(), _TYPES)}"
            )
    return {str(name): str(kind).upper() for name, kind in given.items()}


def _row(number: int, text: Any) -> Mapping[str, Any]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise FormatError(f"row {number} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise FormatError(f"row {number} is no JSON object, but {type(found).__name__}")
    return found


def _column(name: str, kind: str, values: list[Any]) -> Any:
    make: Callable[[str, list[Any]], Any] = _moments if kind in _MOMENTS else _plain
    try:
        return make(kind, values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"column {name!r} of type {kind}: {error}") from error


def _plain(kind: str, values: list[Any]) -> Any:
    return to_numpy(pa.array(values, BY_NAME[kind].arrow))


def _moments(kind: str, values: list[Any]) -> Any:
    texts = ["NaT" if value is None else _iso(value) for value in values]
    return np.array(texts, dtype=_MOMENTS[kind])


def _iso(text: Any) -> str:
    """DolphinDB writes 2024.08.30T12:00:00.123; numpy wants dashes in the date."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no text")
    day, *clock = text.replace(" ", "T").split("T")
    return "T".join([day.replace(".", "-"), *clock])
