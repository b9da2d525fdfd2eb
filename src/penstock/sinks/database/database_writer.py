"""Writes rows and their mark into a table of a database, in one transaction."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, DataType, StringType, StructField, StructType

from penstock.errors import ConfigError
from penstock.pipeline import Batch, Delivery, LastWrite, Mark, Opening, Writer, is_repetition
from penstock.pipeline.names import quoted
from penstock.sinks.database.database_api import (
    GONE,
    MARKS,
    ORDER,
    RANGES,
    ColumnInfo,
    Database,
    Layout,
    Plain,
    Session,
    Table,
    as_last_write,
    known_table,
)
from penstock.sinks.database.relay import Relay
from penstock.sinks.database.table_reading import as_frame
from penstock.sinks.database.tasks import Newest
from penstock.sinks.evolution import Evolution, evolution
from penstock.sinks.fencing import claimed

if TYPE_CHECKING:
    from penstock.sinks.database.database_sink import DatabaseSink


class DatabaseWriter(Writer["DatabaseSink"]):
    """Opens a session for each write: the database ends it when this process is gone."""

    def __init__(self, sink: DatabaseSink, opening: Opening, database: Database) -> None:
        super().__init__(sink, opening)
        self._database = database
        self._target = Table.read(sink.table)
        self._named = f"the table {str(self._target)!r}"

    def prepare(self, schema: StructType) -> None:
        """Make the table, or let it follow the rows, or say what prevents that."""
        rows = self.sink.stored(schema)
        with self._database.session() as session:
            session.alone()
            if (existing := session.columns(self._target)) is not None:
                self._follow(session, existing, rows)
            elif self.sink.create:
                session.make(self._target, rows.fields, self.sink.key)
            else:
                columns = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in rows)
                raise ConfigError(
                    f"there is no table {str(self._target)!r}, and 'create' is false: create it for "
                    f"the columns {columns}, or set 'create: true'"
                )
            if self.opening.delivery is not Delivery.AT_LEAST_ONCE:
                self._prepare_marks(session)
            session.commit()

    def last_write(self) -> LastWrite | None:
        """Return the pipeline's row in the table of the marks, without a lock.

        It is called before that table is ready: there may be none, or one without ranges.
        """
        marks = self._target.sibling(MARKS)
        with self._database.session() as session:
            existing = {column.name for column in session.columns(marks) or ()}
            if not existing:
                return None
            names = ["pipeline", "target", *Mark._fields, *({RANGES} & existing)]
            for owner, target, *mark in session.read(marks, names):
                if (owner, target) == (self.opening.pipeline, self._target.name):
                    return as_last_write([*mark, None][:4])
        return None

    def claim(self, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Write the epoch into the pipeline's row, after every transaction that holds it ended."""
        if self.opening.delivery is Delivery.AT_LEAST_ONCE:
            return None
        pipeline = self.opening.pipeline
        with self._database.session() as session:
            last = session.lock_mark(self._target, pipeline)
            own = claimed(last, epoch, pipeline, continues)
            session.set_mark(self._target, pipeline, own)
            session.commit()
        return last

    def write(self, batch: Batch) -> None:
        """Write the rows and their mark in one transaction; rows of a repetition are only counted."""
        if not self._written(batch):
            batch.rows.write.format("noop").mode("overwrite").save()

    def read_back(self, schema: StructType) -> DataFrame | None:
        """Return the rows of the table: those of the columns asked for that it has."""
        with self._database.session() as session:
            if (existing := session.columns(self._target)) is None:
                return None
            columns = known_table(self._database, existing, self.sink.stored(schema))
            rows = session.read(self._target, columns.names)
            return as_frame(self.opening.spark, rows, columns)

    def _follow(self, session: Session, existing: list[ColumnInfo], rows: StructType) -> None:
        """Alter the table so that it accepts the rows, or refuse them."""
        change = evolution(known_table(self._database, existing, rows), rows, self._named)
        self._refuse_missing_values(existing, rows)
        self._refuse_changes(change)
        for field in change.added:
            session.add(self._target, field)
        for field in change.widened:
            session.widen(self._target, field)
        key = {name.lower() for name in self.sink.key if self.sink.mode == "upsert"}
        if key and key not in [{n.lower() for n in each} for each in session.keys(self._target)]:
            columns = ", ".join(self.sink.key)
            raise ConfigError(
                f"mode is 'upsert' with the key {columns}, and {self._named} has no primary key or "
                f"unique index on exactly these columns: add one, as in 'ALTER TABLE {self._target} ADD "
                f"PRIMARY KEY ({columns})', or write to another table"
            )

    def _refuse_changes(self, change: Evolution) -> None:
        """Refuse what would alter the table, where that is not wanted."""
        if self.sink.evolve or not (change.added or change.widened):
            return
        missing = ", ".join(repr(field.name) for field in change.added)
        narrow = ", ".join(repr(field.name) for field in change.widened)
        lacks = " and ".join(
            part
            for part in (
                f"has no column {missing}" if missing else "",
                f"has too narrow a type in {narrow}" if narrow else "",
            )
            if part
        )
        raise ConfigError(
            f"{self._named} {lacks}, and 'evolve' is false: alter the table, leave the columns out in a "
            "step, or set 'evolve: true'"
        )

    def _refuse_missing_values(self, existing: list[ColumnInfo], rows: StructType) -> None:
        if self.sink.mode == "update":
            return
        brought = {name.lower() for name in rows.names}
        needed = [column.name for column in existing if column.needed]
        if missing := [name for name in needed if name.lower() not in brought]:
            raise ConfigError(
                f"{self._named} needs a value in {', '.join(map(repr, missing))}, and the rows "
                f"bring {', '.join(map(repr, rows.names))}: give the column a default, allow null in it, "
                "or make the value in a step"
            )

    def _prepare_marks(self, session: Session) -> None:
        """Create the table of the marks; if it exists, the right to create is not needed."""
        marks = self._target.sibling(MARKS)
        if (existing := session.columns(marks)) is None:
            session.make_marks(self._target)
        elif RANGES not in [column.name for column in existing]:
            session.add(marks, StructField(RANGES, StringType()))

    def _written(self, batch: Batch) -> bool:
        with self._database.session() as session:
            if not self._marked(session, batch):
                return False
            layout = self._layout(session, batch.rows.schema)
            form = self._database.form(layout)
            encode = Newest(layout.key, form.encode) if layout.staged else form.encode
            with session.loading(layout) as put, Relay.for_tasks_of(batch.rows, put) as relay:
                relay.carry(self._shaped(batch.rows, layout, form.plain), encode)
            if layout.staged:
                session.settle(layout)
            session.commit()
        return True

    def _marked(self, session: Session, batch: Batch) -> bool:
        """Store the mark, whose row stays locked; return False if the write was made before."""
        if batch.delivery is Delivery.AT_LEAST_ONCE:
            return True
        last = session.lock_mark(self._target, batch.pipeline)
        if is_repetition(last.mark if last else None, batch.mark, batch.pipeline):
            return False
        session.set_mark(self._target, batch.pipeline, batch.as_write)
        return True

    def _layout(self, session: Session, rows: StructType) -> Layout:
        """Return the rows' columns under the names and with the types that the table has."""
        if (existing := session.columns(self._target)) is None:
            raise ConfigError(
                f"{self._named} does not exist any more: it was created when the pipeline "
                "started; restart the pipeline to recreate it"
            )
        stored = self.sink.stored(rows)
        table = known_table(self._database, existing, stored)
        known = {field.name.lower(): field for field in table.fields}
        if missing := [name for name in stored.names if name.lower() not in known]:
            raise ConfigError(
                f"{self._named} has no column {missing[0]!r} any more: it had one when the "
                "pipeline started; restart the pipeline to add it again"
            )
        kinds = {column.name: column.kind for column in existing}
        fields = tuple(known[name.lower()] for name in stored.names)
        return Layout(
            table=self._target,
            fields=fields,
            kinds=tuple(kinds[field.name] for field in fields),
            # With append it is the table's own, and the database compares.
            key=tuple(known[name.lower()].name for name in self.sink.key if self.sink.is_keyed),
            deletes=self.sink.delete_when is not None,
            updates=self.sink.mode == "update",
        )

    def _shaped(self, rows: DataFrame, layout: Layout, plain: Plain) -> DataFrame:
        """Return the rows with plain columns only, and what the staging table needs."""
        columns = [
            plain(_as(rows, name, field.dataType), field.dataType).alias(field.name)
            for name, field in zip(self.sink.stored(rows.schema).names, layout.fields, strict=True)
        ]
        if layout.staged:
            columns.append(f.monotonically_increasing_id().alias(ORDER))
        if layout.deletes:
            gone = f.coalesce(f.col(quoted(str(self.sink.delete_when))), f.lit(False))
            columns.append(plain(gone, BooleanType()).alias(GONE))
        return rows.select(*columns)


def _as(rows: DataFrame, name: str, kind: DataType) -> Column:
    """Return a column with the type that the table has, which may be wider than the rows' own."""
    column = f.col(quoted(name))
    return column if rows.schema[name].dataType == kind else column.cast(kind)
