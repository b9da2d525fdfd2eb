"""One transaction through SQLAlchemy. It has no marks: nothing here promises exactly-once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import types as t

from penstock.errors import ConfigError, RefusedError
from penstock.pipeline import LastWrite
from penstock.sinks.database.database_api import (
    GONE,
    ORDER,
    ColumnInfo,
    Layout,
    Put,
    Session,
    Table,
)

# A text that is part of a key has a length in most databases.
_KEY_LENGTH = 255
_AT_ONCE = 10_000
_KINDS: dict[type[t.DataType], Any] = {
    t.BooleanType: sa.Boolean,
    t.ByteType: sa.SmallInteger,
    t.ShortType: sa.SmallInteger,
    t.IntegerType: sa.Integer,
    t.LongType: sa.BigInteger,
    t.FloatType: sa.Float,
    t.DoubleType: sa.Double,
    t.BinaryType: sa.LargeBinary,
    t.DateType: sa.Date,
    t.TimestampNTZType: sa.DateTime,
}
Row = dict[str, Any]


class SQLAlchemySession(Session):
    """One transaction on one connection; rows are buffered until all have come."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._rows: list[pa.RecordBatch] = []

    def alone(self) -> None:
        """Do nothing: there is no lock that all databases have."""

    def columns(self, table: Table) -> list[ColumnInfo] | None:
        """Ask the dialect."""
        inspector = sa.inspect(self._connection)
        if not inspector.has_table(table.name, table.schema):
            return None
        return [
            ColumnInfo(each["name"], str(each["type"]), _is_needed(each))
            for each in inspector.get_columns(table.name, table.schema)
        ]

    def keys(self, table: Table) -> list[set[str]]:
        """Ask the dialect for the primary key, and unique constraints and indexes where it knows them."""
        inspector = sa.inspect(self._connection)
        found = [set(inspector.get_pk_constraint(table.name, table.schema)["constrained_columns"])]
        for each in inspector.get_indexes(table.name, table.schema):
            found += [{str(name) for name in each["column_names"]}] if each["unique"] else []
        try:
            constraints = inspector.get_unique_constraints(table.name, table.schema)
        except NotImplementedError:
            return found
        return found + [set(each["column_names"]) for each in constraints]

    def make(self, table: Table, fields: Sequence[t.StructField], key: Sequence[str]) -> None:
        """Create the table, with a primary key where one is named."""
        columns = [
            sa.Column(
                each.name,
                _kind(each.dataType, in_key=each.name in key),
                primary_key=each.name in key,
                autoincrement=False,
            )
            for each in fields
        ]
        sa.Table(table.name, sa.MetaData(), *columns, schema=table.schema).create(self._connection)

    def add(self, table: Table, field: t.StructField) -> None:
        """Add the column."""
        dialect = self._connection.dialect
        quote = dialect.identifier_preparer
        name = quote.format_table(sa.table(table.name, schema=table.schema))
        kind = sa.types.to_instance(_kind(field.dataType)).compile(dialect)
        statement = f"ALTER TABLE {name} ADD {quote.quote(field.name)} {kind}"
        self._connection.execute(sa.text(statement.replace(":", r"\:")))

    def widen(self, table: Table, field: t.StructField) -> None:
        """Refuse: each database has words of its own for this."""
        raise ConfigError(
            f"the type of {field.name!r} in the table {str(table)!r} cannot be changed through "
            "SQLAlchemy: alter the table, or cast the column in a step"
        )

    def make_marks(self, table: Table) -> None:
        """Refuse: there are no marks."""
        _no_marks(table)

    def lock_mark(self, table: Table, pipeline: str) -> LastWrite | None:  # noqa: ARG002
        """Refuse: there are no marks."""
        _no_marks(table)

    def set_mark(self, table: Table, pipeline: str, write: LastWrite) -> None:  # noqa: ARG002
        """Refuse: there are no marks."""
        _no_marks(table)

    @contextmanager
    def loading(self, layout: Layout) -> Iterator[Put]:
        """Buffer the frames: they come from other threads, where a connection may not be used."""
        self._rows = []

        def put(frame: bytes) -> None:
            self._rows.extend(pa.ipc.open_stream(frame))

        yield put
        self._require_exact(layout)
        if not layout.staged:
            for batch in self._rows:
                self._insert(layout, batch.to_pylist())

    def _require_exact(self, layout: Layout) -> None:
        """Refuse decimals that a dialect without decimals would change: it stores them as doubles."""
        if self._connection.dialect.supports_native_decimal:
            return
        names = [each.name for each in layout.fields if isinstance(each.dataType, t.DecimalType)]
        for name in names:
            for batch in self._rows:
                for value in batch.column(name).to_pylist():
                    if value is not None and Decimal(repr(float(value))) != value:
                        raise RefusedError(
                            f"{value} in the column {name!r} has more digits than a floating-point "
                            "number, and the database has no other; cast it to a text in a step"
                        )

    def settle(self, layout: Layout) -> None:
        """Let the newest row of each key take the place of the old one, or take it away."""
        rows = newest(self._rows, layout)
        gone = [row for row in rows if layout.deletes and row[GONE]]
        kept = [row for row in rows if not (layout.deletes and row[GONE])]
        target = _table(layout)
        if gone:  # first, so that what is gone breaks no other unique index
            statement = sa.delete(target).where(*_same(target, layout))
            self._connection.execute(statement, [_of_key(row, layout) for row in gone])
        missing = [row for row in kept if not self._updated(target, layout, row)]
        if not layout.updates:
            self._insert(layout, missing)

    def _updated(self, target: Any, layout: Layout, row: Row) -> bool:
        """Change the row of a key; return whether there was one."""
        where = _same(target, layout)
        if layout.rest:
            values: Row = {name: sa.bindparam(f"v{at}") for at, name in enumerate(layout.rest)}
            given = {f"v{at}": row[name] for at, name in enumerate(layout.rest)}
            changed = self._connection.execute(
                sa.update(target).where(*where).values(values), given | _of_key(row, layout)
            )
            if self._connection.dialect.supports_sane_rowcount and changed.rowcount >= 0:
                return changed.rowcount > 0
        # Nothing to change, or a driver that does not count.
        asked = sa.select(sa.literal(1)).select_from(target).where(*where)
        return self._connection.execute(asked, _of_key(row, layout)).first() is not None

    def _insert(self, layout: Layout, rows: Sequence[Row]) -> None:
        names = layout.names
        values: Row = {name: sa.bindparam(f"v{at}") for at, name in enumerate(names)}
        statement = sa.insert(_table(layout)).values(values)
        given = [{f"v{at}": row[name] for at, name in enumerate(names)} for row in rows]
        for start in range(0, len(given), _AT_ONCE):
            self._connection.execute(statement, given[start : start + _AT_ONCE])

    def read(self, table: Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return the rows."""
        origin = sa.table(table.name, schema=table.schema)
        wanted: list[Any] = [sa.column(name) for name in names]
        query = sa.select(*wanted).select_from(origin)
        for row in self._connection.execution_options(stream_results=True).execute(query):
            yield tuple(row)

    def commit(self) -> None:
        """Keep what was done."""
        self._connection.commit()


def newest(batches: Sequence[pa.RecordBatch], layout: Layout) -> list[Row]:
    """Return the last row of each key, in their order."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    rows.sort(key=lambda row: row[ORDER])
    last = {tuple(row[name] for name in layout.key): row for row in rows}
    return sorted(last.values(), key=lambda row: row[ORDER])


def _no_marks(table: Table) -> NoReturn:
    raise ConfigError(
        f"the table {str(table)!r} is written through SQLAlchemy, which is at-least-once only"
    )


def _is_needed(column: Any) -> bool:
    has_value = column.get("default") is not None or column.get("autoincrement") is True
    return not (column.get("nullable", True) or has_value or column.get("identity"))


def _kind(kind: t.DataType, *, in_key: bool = False) -> Any:
    if isinstance(kind, t.DecimalType):
        return sa.Numeric(kind.precision, kind.scale)
    if isinstance(kind, t.TimestampType):
        return sa.DateTime(timezone=True)
    return _KINDS.get(type(kind)) or (sa.String(_KEY_LENGTH) if in_key else sa.Text)


def _table(layout: Layout) -> Any:
    columns = (sa.column(each.name, _kind(each.dataType)) for each in layout.fields)
    return sa.table(layout.table.name, *columns, schema=layout.table.schema)


def _same(target: Any, layout: Layout) -> list[Any]:
    return [target.c[name] == sa.bindparam(f"k{at}") for at, name in enumerate(layout.key)]


def _of_key(row: Row, layout: Layout) -> Row:
    return {f"k{at}": row[name] for at, name in enumerate(layout.key)}
