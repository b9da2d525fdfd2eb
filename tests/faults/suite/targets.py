"""The sinks under test: how a pipeline writes to each, where to kill it, and what is in it then."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any, ClassVar

import orjson
import psycopg
import pyarrow.dataset as ds
from psycopg import sql

from penstock import Connection
from penstock.formats.avro import Avro
from penstock.formats.registry import Registry
from penstock.pipeline import Batch, Opening, Writer
from penstock.pipeline.storage import Folder
from penstock.sinks.files import FilesSink
from penstock.sinks.files.files_writer import FilesWriter
from penstock.testing import read_all

Row = tuple[int, int, int]
"""Partition, offset and number of a record."""

COMMITS = "penstock.kafka.offsets:GroupOffsets.commit"
BURIES = "penstock.engine.dead_letter_batch:write_dead_letters"
# After the rows, before anything else is noted; after the group was committed, before Spark's own note.
COMMON = (f"{COMMITS}|before|2", f"{COMMITS}|after|2", f"{BURIES}|before|1", f"{BURIES}|after|1")


@dataclass(frozen=True)
class Setting:
    """Where one run of the suite keeps its things."""

    connection: Connection
    name: str
    folder: Path
    postgres: str | None = None
    password: str | None = None
    # A schema registry: the sink kafka writes Avro then.
    registry: str | None = None

    def written(self) -> str:
        """As text for the driver's command line."""
        given = {"brokers": self.connection.brokers, "folder": str(self.folder)}
        return json.dumps(
            given
            | {"name": self.name, "postgres": self.postgres, "password": self.password}
            | {"registry": self.registry}
        )

    @classmethod
    def read(cls, text: str) -> Setting:
        given = json.loads(text)
        connection = Connection.model_validate({"bootstrap.servers": given.pop("brokers")})
        return cls(connection, folder=Path(given.pop("folder")), **given)


@dataclass(frozen=True)
class Target:
    """One sink: its options, the points to kill at in addition to the common ones, and how to read it."""

    sink: Callable[[Setting], Any]
    rows: Callable[[Setting], Iterator[Row]]
    points: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def _columns(table: Any) -> Iterator[Row]:
    names = ("kafka_partition", "kafka_offset", "n")
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)


def _from_files(setting: Setting) -> Iterator[Row]:
    folder = setting.folder / "table"
    files = [
        str(file)
        for file in folder.rglob("*.parquet")
        if not file.relative_to(folder).parts[0].startswith("_")
    ]
    return _columns(ds.dataset(files, format="parquet").to_table()) if files else iter(())


def _from_json_files(setting: Setting) -> Iterator[Row]:
    for file in (setting.folder / "table").glob("*.json*"):
        if file.name.startswith("."):  # Hadoop's checksums
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            row = orjson.loads(line)
            yield row["kafka_partition"], row["kafka_offset"], row["n"]


def _through_spark(read: Callable[[Any, Setting], Any]) -> Callable[[Setting], Iterator[Row]]:
    def rows(setting: Setting) -> Iterator[Row]:
        from penstock.engine import spark_session

        return _columns(read(spark_session(), setting).toArrow())

    return rows


_from_delta = _through_spark(
    lambda spark, s: spark.read.format("delta").load(str(s.folder / "table"))
)
_from_iceberg = _through_spark(
    lambda spark, s: spark.read.format("iceberg").load(str(s.folder / "lake/db/rows"))
)


def _lake(setting: Setting) -> dict[str, str]:
    return {"warehouse": str(setting.folder / "lake"), "table": "db.rows"}


def _from_postgres(setting: Setting) -> Iterator[Row]:
    with psycopg.connect(str(setting.postgres), password=setting.password) as session:
        query = sql.SQL("SELECT kafka_partition, kafka_offset, n FROM {}")
        yield from session.execute(query.format(sql.Identifier(setting.name)))


def _topic(setting: Setting) -> dict[str, Any]:
    form = {"avro": {"registry": setting.registry}} if setting.registry else "json"
    return {"kafka": {"topic": f"{setting.name}.out", "value_format": form}}


def _from_topic(setting: Setting) -> Iterator[Row]:
    read = Avro(Registry(setting.registry)).decode if setting.registry else orjson.loads
    for record in read_all(setting.connection, f"{setting.name}.out"):
        row = read(record.value)
        yield row["kafka_partition"], row["kafka_offset"], row["n"]


def _database(setting: Setting, **options: Any) -> dict[str, Any]:
    where = {"url": setting.postgres, "password": setting.password, "table": setting.name}
    return {"database": where | options}


def _updated(setting: Setting) -> dict[str, Any]:
    """Update rows that exist, in a table that counts how often each of its rows is changed."""
    name = sql.Identifier(setting.name)
    with psycopg.connect(str(setting.postgres), password=setting.password) as session:
        session.execute("SELECT pg_advisory_xact_lock(1)")
        if session.execute("SELECT to_regclass(%s)", [setting.name]).fetchone() == (None,):
            for statement in _COUNTING:
                session.execute(sql.SQL(statement).format(name))
    return _database(setting, mode="update", key=_KEY, create=False, evolve=False)


_COUNTING = (
    "CREATE TABLE {} (kafka_partition int, kafka_offset bigint, n bigint, times int DEFAULT 0, "
    "PRIMARY KEY (kafka_partition, kafka_offset))",
    "INSERT INTO {} SELECT p, o FROM generate_series(0, 2) p, generate_series(0, 300000) o",
    "CREATE OR REPLACE FUNCTION count_times() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN NEW.times = OLD.times + 1; RETURN NEW; END $$",
    "CREATE TRIGGER times BEFORE UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION count_times()",
)


def _from_counted(setting: Setting) -> Iterator[Row]:
    with psycopg.connect(str(setting.postgres), password=setting.password) as session:
        query = sql.SQL("SELECT kafka_partition, kafka_offset, n, times FROM {} WHERE times > 0")
        for *row, times in session.execute(query.format(sql.Identifier(setting.name))):
            yield from repeat((row[0], row[1], row[2]), times)


def _sqlite(setting: Setting) -> dict[str, Any]:
    return {"database": {"url": f"sqlite:///{setting.folder / 'rows.db'}", "table": "rows"}}


def _from_sqlite(setting: Setting) -> Iterator[Row]:
    with closing(sqlite3.connect(setting.folder / "rows.db")) as session:
        yield from session.execute("SELECT kafka_partition, kafka_offset, n FROM rows")


class ForgetfulSink(FilesSink):
    """Broken on purpose: a batch that is run again does not replace what it wrote the first time."""

    name: ClassVar[str] = "forgetful"

    def open(self, opening: Opening) -> Writer:
        return ForgetfulWriter(self, opening, Folder(opening.spark, self.path))


class ForgetfulWriter(FilesWriter):
    def write(self, batch: Batch) -> None:
        name = f"{batch.pipeline}.{os.getpid()}"
        own = FilesWriter(self.sink, replace(self.opening, pipeline=name), self._folder)
        own.write(replace(batch, pipeline=name))


class LossySink(FilesSink):
    """Broken on purpose: the first batch after a start is taken for one that was written before."""

    name: ClassVar[str] = "lossy"

    def open(self, opening: Opening) -> Writer:
        return LossyWriter(self, opening, Folder(opening.spark, self.path))


class LossyWriter(FilesWriter):
    def write(self, batch: Batch) -> None:
        if batch.may_repeat and batch.id:
            batch.rows.write.format("noop").mode("overwrite").save()
        else:
            super().write(batch)


_MOVES = "penstock.pipeline.storage:Folder.move"
_ACTS = "penstock.sinks.files.journal:Journal.add"
_IN_RENAME = (
    f"{_ACTS}|before|3",
    f"{_ACTS}|after|3",
    f"{_MOVES}|before|2",
    f"{_MOVES}|after|3",
)
_JOINS = "penstock.sinks.files.joining:Joining"
_COMPACTED = {"compact": {"every": "500ms"}}
_AT_COMMIT = (
    "penstock.sinks.lake.lake_writer:LakeWriter.write|before|2",
    "penstock.sinks.lake.lake_writer:LakeWriter.write|after|1",
)
_IN_TRANSACTION = (
    "penstock.sinks.database.postgresql.postgresql_session:PostgreSQLSession.settle|before|1",
    "penstock.sinks.database.postgresql.postgresql_session:PostgreSQLSession.commit|before|4",
    "penstock.sinks.database.postgresql.postgresql_session:PostgreSQLSession.commit|after|4",
)
_IN_SQLITE = (
    "penstock.sinks.database.sqlite.sqlite_database:SQLiteSession.commit|before|4",
    "penstock.sinks.database.sqlite.sqlite_database:SQLiteSession.commit|after|4",
)
_IN_TASK = (
    "penstock.kafka.producing.record_transaction:Transaction.send|after|1",
    "penstock.kafka.producing.record_transaction:Transaction.commit|before|1",
    "penstock.kafka.producing.record_transaction:Transaction.commit|after|1",
)
_KEY = ["kafka_partition", "kafka_offset"]

TARGETS = {
    "files": Target(
        lambda s: {"files": {"path": str(s.folder / "table")}}, _from_files, points=_IN_RENAME
    ),
    "files, json": Target(
        lambda s: {"files": {"path": str(s.folder / "table"), "format": "json"}},
        _from_json_files,
        points=_IN_RENAME,
    ),
    "files, compacted": Target(
        lambda s: {
            "files": {"path": str(s.folder / "table"), "compact": {"every": "500ms", "files": 2}}
        },
        _from_files,
        points=(
            f"{_JOINS}._join_one|before|1",
            f"{_JOINS}._replace|before|1",
            "penstock.sinks.files.journal:Journal.finish|before|3",
            f"{_JOINS}.join|after|1",
        ),
    ),
    "delta": Target(lambda s: {"delta": str(s.folder / "table")}, _from_delta, points=_AT_COMMIT),
    "delta, compacted": Target(
        lambda s: {"delta": {"path": str(s.folder / "table")} | _COMPACTED},
        _from_delta,
        points=(
            "penstock.sinks.delta.delta_table:DeltaTable.compact|before|1",
            "penstock.sinks.delta.delta_table:DeltaTable.compact|after|1",
        ),
    ),
    "delta, upsert": Target(
        lambda s: {"delta": {"path": str(s.folder / "table"), "mode": "upsert", "key": _KEY}},
        _from_delta,
        points=_AT_COMMIT,
    ),
    "iceberg": Target(lambda s: {"iceberg": _lake(s)}, _from_iceberg, points=_AT_COMMIT),
    "iceberg, compacted": Target(
        lambda s: {"iceberg": _lake(s) | _COMPACTED},
        _from_iceberg,
        points=(
            "penstock.sinks.iceberg.iceberg_table:IcebergTable.compact|before|1",
            "penstock.sinks.iceberg.iceberg_table:IcebergTable.compact|after|1",
        ),
    ),
    "database": Target(_database, _from_postgres, points=_IN_TRANSACTION),
    "database, upsert": Target(
        lambda s: _database(s, mode="upsert", key=_KEY), _from_postgres, points=_IN_TRANSACTION
    ),
    "database, update": Target(_updated, _from_counted, points=_IN_TRANSACTION),
    "database, sqlite": Target(_sqlite, _from_sqlite, points=_IN_SQLITE),
    "kafka": Target(_topic, _from_topic, points=_IN_TASK),
    "forgetful": Target(
        lambda s: ForgetfulSink(path=str(s.folder / "table")),
        _from_files,
        points=(f"{_MOVES}|before|2", f"{_MOVES}|after|3"),
    ),
    "lossy": Target(
        lambda s: LossySink(path=str(s.folder / "table")),
        _from_files,
        points=("penstock.sinks.files.files_writer:FilesWriter.write|before|2",),
    ),
}
BROKEN = ("forgetful", "lossy")
EXACT = [name for name in TARGETS if name not in BROKEN]
