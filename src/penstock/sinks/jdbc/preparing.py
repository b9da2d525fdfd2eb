"""Makes the target ready: the table is created, or it follows the rows, or the reason why not is said."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.sinks.evolution import evolution
from penstock.sinks.jdbc.database import MARKS, Database, Found, Session, Table, known_table


def ready(
    database: Database, session: Session, table: Table, rows: StructType, key: Sequence[str]
) -> None:
    """Create the table from the rows' schema, or bring it to where it can take them."""
    session.alone()
    found = session.columns(table)
    if found is None:
        session.make(table, rows.fields, key)
        return
    known = known_table(database, found, rows)
    change = evolution(known, rows, f"the table {str(table)!r}")
    _nothing_missing(table, found, rows)
    for field in change.added:
        session.add(table, field)
    for field in change.widened:
        session.widen(table, field)
    wanted = {name.lower() for name in key}
    if key and wanted not in [{name.lower() for name in each} for each in session.keys(table)]:
        raise ConfigError(_no_key(table, key))


def ready_for_marks(session: Session, table: Table) -> None:
    """Create the table of the marks; where it is there already, the right to create is not needed."""
    if session.columns(table.beside(MARKS)) is None:
        session.make_marks(table)


def need_table(session: Session, table: Table) -> list[Found]:
    """Return the table's columns; a table that is gone since the start is an error."""
    if (found := session.columns(table)) is None:
        raise ConfigError(
            f"the table {str(table)!r} is not there any more: it was made when the pipeline started; "
            "start the pipeline again to make it anew"
        )
    return found


def need_columns(table: Table, known: Collection[str], rows: StructType) -> None:
    """Refuse rows with a column that the table lost since the start."""
    if missing := [name for name in rows.names if name.lower() not in known]:
        raise ConfigError(
            f"the table {str(table)!r} has no column {missing[0]!r} any more: it had one when the "
            "pipeline started; start the pipeline again to add it anew"
        )


def _nothing_missing(table: Table, found: Sequence[Found], rows: StructType) -> None:
    brought = {name.lower() for name in rows.names}
    missing = [
        column.name for column in found if column.needed and column.name.lower() not in brought
    ]
    if missing:
        raise ConfigError(
            f"the table {str(table)!r} needs a value in {', '.join(map(repr, missing))}, and the rows "
            f"bring {', '.join(map(repr, rows.names))}: give the column a default, allow null in it, "
            "or make the value in a step"
        )


def _no_key(table: Table, key: Sequence[str]) -> str:
    columns = ", ".join(key)
    return (
        f"mode is 'upsert' with the key {columns}, and the table {str(table)!r} has no primary key or "
        f"unique index on exactly these columns: add one, as in 'ALTER TABLE {table} ADD PRIMARY KEY "
        f"({columns})', or write to another table"
    )
