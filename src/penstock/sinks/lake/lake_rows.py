"""Rows made to fit a table: its columns, its types; and the statement that merges them into it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from penstock.errors import ConfigError
from penstock.pipeline.names import quoted
from penstock.sinks.evolution import evolution


def nullable(schema: StructType) -> StructType:
    """Return a schema in which everything may be null.

    >>> nullable(StructType().add("id", "long", nullable=False)).fields[0].nullable
    True
    """
    return StructType([StructField(x.name, _loose(x.dataType)) for x in schema.fields])


def _loose(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return nullable(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_loose(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_loose(kind.keyType), _loose(kind.valueType))
    return kind


def fitted(rows: DataFrame, table: StructType, also: Sequence[str] = ()) -> DataFrame:
    """Return rows under the table's names and in its order, cast where it is wider.

    `also` names columns that the table does not have and that are kept all the same.
    """
    given = {field.name.lower(): field for field in rows.schema.fields}
    columns = [
        _column(given[field.name.lower()], field)
        for field in table.fields
        if field.name.lower() in given
    ]
    return rows.select(*columns, *(f.col(quoted(name)) for name in also))


def need_columns(table: StructType, rows: StructType, named: str) -> None:
    """Refuse rows that a table can no longer take: it lost a column since the pipeline started.

    >>> need_columns(StructType().add("a", "long"), StructType().add("b", "long"), "the table t")
    Traceback (most recent call last):
    ...
    penstock.errors.ConfigError: the table t has no column 'b' any more: ...
    """
    change = evolution(table, rows, named)
    if change.added:
        raise ConfigError(
            f"{named} has no column {change.added[0].name!r} any more: it had one when the pipeline "
            "started; start the pipeline again to add it, or leave the column out in a step"
        )
    if change.widened:
        raise ConfigError(
            f"the column {change.widened[0].name!r} of {named} has a narrower type than when the "
            "pipeline started; start the pipeline again to widen it, or cast it in a step"
        )


def _column(given: StructField, wanted: StructField) -> Column:
    column = f.col(quoted(given.name))
    if given.dataType.simpleString() != wanted.dataType.simpleString():
        column = column.cast(wanted.dataType)
    return column.alias(wanted.name)


def merge(
    target: str, source: str, key: Sequence[str], columns: Sequence[str], delete_when: str | None
) -> str:
    """Return the statement that replaces, adds and deletes rows by key. A null is a key like others.

    >>> print(merge("t", "s", ["id"], ["id", "n"], None))
    MERGE INTO t AS old USING s AS new ON old.`id` <=> new.`id`
    WHEN MATCHED THEN UPDATE SET old.`id` = new.`id`, old.`n` = new.`n`
    WHEN NOT MATCHED THEN
    INSERT (`id`, `n`)
    VALUES (new.`id`, new.`n`)
    """
    same = " AND ".join(f"old.{quoted(name)} <=> new.{quoted(name)}" for name in key)
    values = ", ".join(f"old.{quoted(name)} = new.{quoted(name)}" for name in columns)
    gone = f"coalesce(new.{quoted(delete_when)}, false)" if delete_when else ""
    inserted = ", ".join(f"new.{quoted(name)}" for name in columns)
    clauses = [
        f"MERGE INTO {target} AS old USING {source} AS new ON {same}",
        *([f"WHEN MATCHED AND {gone} THEN DELETE"] if gone else []),
        f"WHEN MATCHED THEN UPDATE SET {values}",
        f"WHEN NOT MATCHED{f' AND NOT {gone}' if gone else ''} THEN",
        f"INSERT ({', '.join(map(quoted, columns))})",
        f"VALUES ({inserted})",
    ]
    return "\n".join(clauses)
