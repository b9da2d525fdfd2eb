"""The sinks under test: how a pipeline writes to each, where to kill it, and what is in it then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import orjson
import psycopg
import pyarrow.dataset as ds
from psycopg import sql

from penstock import Connection
from penstock.pipeline import Batch
from penstock.sinks.files import FilesSink
from penstock.testing import read_all

Row = tuple[int, int, int]
"""Partition, offset and number of a record."""

COMMITS = "penstock.kafka.offsets:GroupOffsets.commit"
BURIES = "penstock.engine.deadletters:write_dead_letters"
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

    def written(self) -> str:
        """As text for the driver's command line."""
        given = {"brokers": self.connection.brokers, "folder": str(self.folder)}
        return json.dumps(
            given | {"name": self.name, "postgres": self.postgres, "password": self.password}
        )

    @classmethod
    def read(cls, text: str) -> Setting:
        given = json.loads(text)
        connection = Connection.model_validate({"bootstrap.servers": given.pop("brokers")})
        return cls(connection, folder=Path(given.pop("folder")), **given)


@dataclass(frozen=True)
class Target:
    """One sink: its options, the points to kill at beside the common ones, and how to read it."""

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


def _from_topic(setting: Setting) -> Iterator[Row]:
    for record in read_all(setting.connection, f"{setting.name}.out"):
        row = orjson.loads(record.value)
        yield row["kafka_partition"], row["kafka_offset"], row["n"]


def _jdbc(setting: Setting, **options: Any) -> dict[str, Any]:
    where = {"url": setting.postgres, "password": setting.password, "table": setting.name}
    return {"jdbc": where | options}


class ForgetfulSink(FilesSink):
    """Broken on purpose: a batch that is run again does not replace what it wrote the first time."""

    name: ClassVar[str] = "forgetful"

    def write(self, batch: Batch) -> None:
        import os
        from dataclasses import replace

        super().write(replace(batch, pipeline=f"{batch.pipeline}.{os.getpid()}"))


class LossySink(FilesSink):
    """Broken on purpose: the first batch after a start is taken for one that was written before."""

    name: ClassVar[str] = "lossy"

    def write(self, batch: Batch) -> None:
        if batch.may_repeat and batch.id:
            batch.rows.write.format("noop").mode("overwrite").save()
        else:
            super().write(batch)


_MOVES = "penstock.pipeline.storage:Folder.move"
_IN_RENAME = (f"{_MOVES}|before|2", f"{_MOVES}|after|3")
_JOINS = "penstock.sinks.files.joining:Joining"
_COMPACTED = {"compact": {"every": "500ms"}}
_AT_COMMIT = (
    "penstock.sinks.lake.sink:LakeSink.write|before|2",
    "penstock.sinks.lake.sink:LakeSink.write|after|1",
)
_IN_TRANSACTION = (
    "penstock.sinks.jdbc.postgresql.session:PostgreSQLSession.settle|before|1",
    "penstock.sinks.jdbc.postgresql.session:PostgreSQLSession.commit|before|4",
    "penstock.sinks.jdbc.postgresql.session:PostgreSQLSession.commit|after|4",
)
_IN_TASK = (
    "penstock.sinks.kafka.transaction:Transaction.send|after|1",
    "penstock.sinks.kafka.transaction:Transaction.commit|before|1",
    "penstock.sinks.kafka.transaction:Transaction.commit|after|1",
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
            f"{_JOINS}.finish|before|3",
            f"{_JOINS}.join|after|1",
        ),
    ),
    "delta": Target(lambda s: {"delta": str(s.folder / "table")}, _from_delta, points=_AT_COMMIT),
    "delta, compacted": Target(
        lambda s: {"delta": {"path": str(s.folder / "table")} | _COMPACTED},
        _from_delta,
        points=(
            "penstock.sinks.delta.table:DeltaTable.compact|before|1",
            "penstock.sinks.delta.table:DeltaTable.compact|after|1",
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
            "penstock.sinks.iceberg.table:IcebergTable.compact|before|1",
            "penstock.sinks.iceberg.table:IcebergTable.compact|after|1",
        ),
    ),
    "jdbc": Target(_jdbc, _from_postgres, points=_IN_TRANSACTION),
    "jdbc, upsert": Target(
        lambda s: _jdbc(s, mode="upsert", key=_KEY), _from_postgres, points=_IN_TRANSACTION
    ),
    "kafka": Target(lambda s: {"kafka": {"topic": f"{s.name}.out"}}, _from_topic, points=_IN_TASK),
    "forgetful": Target(
        lambda s: ForgetfulSink(path=str(s.folder / "table")), _from_files, points=_IN_RENAME
    ),
    "lossy": Target(
        lambda s: LossySink(path=str(s.folder / "table")),
        _from_files,
        points=("penstock.sinks.files.sink:FilesSink.write|before|2",),
    ),
}
BROKEN = ("forgetful", "lossy")
EXACT = [name for name in TARGETS if name not in BROKEN]
