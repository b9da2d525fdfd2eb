"""Where rows can go, for every side of a comparison: ours, hand-written Spark, and how to count them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from psycopg import sql
from pyspark.sql import SparkSession
from tests.services.postgres import PASSWORD, Postgres

from bench.data import PARTITIONS, SCHEMA
from bench.spark_jobs import Jobs
from penstock.config import Connection
from penstock.kafka import Admin

Definition = dict[str, Any]


class Target:
    """One kind of table; each measurement has a fresh one, with a name of its own."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    def place(self, name: str) -> Path:
        return self.scratch / name

    def create(self, name: str) -> None:
        """Make the empty table, where it should be the same for all; it does not count."""

    def sink(self, name: str) -> Definition:
        """Give the sink of our pipeline."""
        raise NotImplementedError

    def spark(self, jobs: Jobs, name: str) -> None:
        """Run the hand-written job."""
        raise NotImplementedError

    def rows(self, name: str) -> int:
        raise NotImplementedError

    def remove(self, name: str) -> None:
        for path in (self.place(name), self.scratch / f"{name}-checkpoint"):
            if path.is_file():
                path.unlink()
            shutil.rmtree(path, ignore_errors=True)


class Lines(Target):
    """One file of lines, which only a peer writes."""

    def rows(self, name: str) -> int:
        with self.place(name).open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


class Files(Target):
    def __init__(self, scratch: Path, form: str) -> None:
        super().__init__(scratch)
        self.form = form

    def sink(self, name: str) -> Definition:
        return {"files": {"path": str(self.place(name)), "format": self.form}}

    def spark(self, jobs: Jobs, name: str) -> None:
        jobs.files(self.form, self.place(name))

    def rows(self, name: str) -> int:
        # Names with an underscore in front are not part of a table, for Spark and for us.
        return int(ds.dataset(self.place(name), format=self.form).count_rows())


class Delta(Target):
    def __init__(self, scratch: Path, spark: SparkSession) -> None:
        super().__init__(scratch)
        self._spark = spark

    def sink(self, name: str) -> Definition:
        return {"delta": str(self.place(name))}

    def spark(self, jobs: Jobs, name: str) -> None:
        jobs.delta(self.place(name))

    def rows(self, name: str) -> int:
        return self._spark.read.format("delta").load(str(self.place(name))).count()


class Iceberg(Target):
    """A catalog on disk, of the kind that needs no server."""

    CATALOG = "bench"

    def __init__(self, scratch: Path, spark: SparkSession) -> None:
        super().__init__(scratch)
        self._spark = spark
        catalog = f"spark.sql.catalog.{self.CATALOG}"
        spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set(f"{catalog}.type", "hadoop")
        spark.conf.set(f"{catalog}.warehouse", scratch.as_uri())

    def folder(self, name: str) -> Path:
        return self.scratch / "lake" / word(name)

    def table(self, name: str) -> str:
        return f"{self.CATALOG}.lake.{word(name)}"

    def create(self, name: str) -> None:
        self._spark.sql(f"CREATE TABLE {self.table(name)} ({SCHEMA}) USING iceberg")

    def sink(self, name: str) -> Definition:
        return {"iceberg": {"table": f"lake.{word(name)}", "warehouse": str(self.scratch)}}

    def spark(self, jobs: Jobs, name: str) -> None:
        jobs.iceberg(self.table(name), self.place(name))

    def rows(self, name: str) -> int:
        """Read it from the current snapshot's summary, as often as one likes."""
        versions = (self.folder(name) / "metadata").glob("v*.metadata.json")
        newest = max(versions, key=lambda path: int(path.name.split(".")[0].removeprefix("v")))
        table = json.loads(newest.read_text())
        snapshots = {one["snapshot-id"]: one["summary"] for one in table.get("snapshots", [])}
        current = snapshots.get(table.get("current-snapshot-id"))
        return int(current["total-records"]) if current else 0

    def remove(self, name: str) -> None:
        super().remove(name)
        shutil.rmtree(self.folder(name), ignore_errors=True)


class Database(Target):
    """PostgreSQL as it is installed: what is committed is on disk."""

    def __init__(self, scratch: Path, server: Postgres) -> None:
        super().__init__(scratch)
        self.server = server
        self.jdbc = f"jdbc:postgresql://{server.host}:{server.port}/penstock"
        self.login = {"user": "penstock", "password": PASSWORD}

    def libpq(self, name: str) -> dict[str, Any]:
        """Give the names that libpq's bindings use, and the table."""
        place = {"host": self.server.host, "port": self.server.port, "dbname": "penstock"}
        return self.login | place | {"table_name": word(name)}

    def create(self, name: str) -> None:
        types = "id bigint, symbol text, price double precision, size int, side text"
        self._do(f"CREATE TABLE {{}} ({types})", name)

    def sink(self, name: str) -> Definition:
        return {"database": {"url": self.server.url, "password": PASSWORD, "table": word(name)}}

    def spark(self, jobs: Jobs, name: str) -> None:
        jobs.jdbc(self.jdbc, word(name), self.login, self.place(name))

    def rows(self, name: str) -> int:
        with self.server.connect() as session:
            query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(word(name)))
            row = session.execute(query).fetchone()
        return int(row[0]) if row else 0

    def remove(self, name: str) -> None:
        super().remove(name)
        self._do("DROP TABLE IF EXISTS {}", name)
        # What this side left to write must not be a load on the next one.
        self._do("CHECKPOINT", name)

    def _do(self, statement: str, name: str) -> None:
        with self.server.connect() as session:
            session.execute(sql.SQL(statement).format(sql.Identifier(word(name))))


class Topic(Target):
    def __init__(self, scratch: Path, spark: SparkSession, connection: Connection) -> None:
        super().__init__(scratch)
        self._spark = spark
        self._connection = connection

    def create(self, name: str) -> None:
        with Admin(self._connection) as admin:
            admin.create_topic(name, PARTITIONS)

    def sink(self, name: str) -> Definition:
        return {"kafka": name}

    def spark(self, jobs: Jobs, name: str) -> None:
        jobs.kafka(name, self.place(name))

    def rows(self, name: str) -> int:
        reader = self._spark.read.format("kafka").options(**self._connection.spark())
        committed = reader.option("kafka.isolation.level", "read_committed")
        return committed.option("subscribe", name).load().count()

    def remove(self, name: str) -> None:
        super().remove(name)
        with Admin(self._connection) as admin:
            admin.delete_topic(name)


def word(name: str) -> str:
    return name.replace("-", "_")
