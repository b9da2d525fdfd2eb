"""Names of columns: how several are written in one text, and how one is written in Spark's SQL.

Every list of columns in a definition is read here, and every name that goes into SQL or into a call of
Spark that parses it is quoted here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_NAME = re.compile(r"\s*(?:`((?:``|[^`])+)`|([^`,\s][^,]*?))\s*(,|\Z)")


def quoted(name: str, sign: str = "`") -> str:
    """Return a name as SQL takes it, whatever is in it: in Spark's quotes, or between other signs.

    >>> quoted("day of `use`"), quoted("day", '"')
    ('`day of ``use```', '"day"')
    """
    return sign + name.replace(sign, sign * 2) + sign


def unquoted(text: str) -> str:
    """Return the name that a text in backticks means.

    >>> unquoted("`a,b`"), unquoted("plain")
    ('a,b', 'plain')
    """
    if len(text) < 3 or not (text.startswith("`") and text.endswith("`")):
        return text
    return text[1:-1].replace("``", "`")


def column_names(text: str) -> list[str]:
    """Return the names in a text with commas; one that has a comma is written in backticks.

    >>> column_names("symbol, day"), column_names("`a,b`, c")
    (['symbol', 'day'], ['a,b', 'c'])
    """
    names: list[str] = []
    at = 0
    while match := _NAME.match(text, at):
        names.append(unquoted(f"`{match[1]}`") if match[1] else match[2])
        at = match.end()
        if not match[3]:
            return names
    raise ValueError(
        f"{text!r} is not a list of columns: give names with commas between them, as in 'symbol, day'; "
        "a name with a comma or a backtick at its start is written in backticks, as in '`a,b`', or as "
        "an item of a list"
    )


def _names(given: Any) -> Any:
    return column_names(given) if isinstance(given, str) else given


ColumnNames = Annotated[
    list[str],
    BeforeValidator(_names),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""One column or several: a list of names, or a text with commas."""


Batches = Iterable["pa.RecordBatch"]


def map_in_arrow(
    rows: DataFrame, function: Callable[[Batches], Batches], schema: StructType | str
) -> DataFrame:
    """Call `rows.mapInArrow`, which parses the columns' names: a backtick or a dot means more there."""
    names = rows.columns
    if not any({*"`."} & {*name} for name in names):
        return rows.mapInArrow(function, schema)

    def call(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from function(batch.from_arrays(batch.columns, names) for batch in batches)

    plain = rows.toDF(*(f"column_{number}" for number in range(len(names))))
    return plain.mapInArrow(call, schema)
