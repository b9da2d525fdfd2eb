"""Headers of records on their way to Python workers: empty lists there, and null before and after.

Spark measures an Arrow batch after each row, and Arrow then passes over all lists that are null: the
time of a batch grows with the square of its rows. Spark gives no headers as null, never as an empty list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pipeline.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEADERS = "array<struct<key:string,value:binary>>"
"""The type of a column of headers."""


def with_empty_headers(rows: DataFrame, name: str = "headers") -> DataFrame:
    """Return rows whose headers are empty instead of null; those without the column as they are."""
    return _changed(rows, name, f"coalesce({quoted(name)}, CAST(array() AS {HEADERS}))")


def with_null_headers(rows: DataFrame, name: str = "headers") -> DataFrame:
    """Return rows whose headers are null instead of empty; those without the column as they are."""
    return _changed(rows, name, f"CASE WHEN size({quoted(name)}) > 0 THEN {quoted(name)} END")


def _changed(rows: DataFrame, name: str, expression: str) -> DataFrame:
    if name not in rows.columns:
        return rows
    changed = {name: f"{expression} AS {quoted(name)}"}
    return rows.selectExpr(*(changed.get(each, quoted(each)) for each in rows.columns))
