"""Source and sink connectors on workers that are bounced: their load, and the records in each place then.

Lines of a file go into a topic and from there into a file, and as structs into another topic and from
there into a table and a table of Iceberg. Rows of a table go into a third topic. A record is a number.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests.faults.suite.workers import Workers
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection
from penstock.control.store.rows import Kind
from penstock.engine import spark_session
from penstock.testing import fill, read_all

_JSON = {"value.converter": "JsonConverter"}
_STRUCT = {
    "transforms": "struct",
    "transforms.struct.type": "HoistField$Value",
    "transforms.struct.field": "line",
}
_BURST, _BREATH = 4, 0.1


@dataclass(frozen=True)
class Places:
    """Where the connectors read and write."""

    name: str
    connection: Connection
    folder: Path
    postgres: Postgres

    @property
    def file(self) -> Path:
        return self.folder / "in.txt"

    @property
    def copy(self) -> Path:
        return self.folder / "out.txt"

    @property
    def word(self) -> str:
        return self.name.replace("-", "_")

    def topic(self, of: str) -> str:
        return f"{self.name}.{of}"

    def configs(self, definition: str = "plain") -> dict[str, dict[str, str]]:
        """Return the connectors by name; another definition logs bad records, of which there are none."""
        made = {**self._sources(), **self._sinks()}
        logged = str(definition != "plain").lower()
        return {
            f"{self.name}-{name}": {
                "name": f"{self.name}-{name}", "errors.log.enable": logged, **config,
            }
            for name, config in made.items()
        }  # fmt: skip

    def _sources(self) -> dict[str, dict[str, str]]:
        file = {"connector.class": "FileStreamSource", "file": str(self.file)}
        table = {"connector.class": "JdbcSource", **self._jdbc, **_JSON}
        return {
            "lines": {**file, "topic": self.topic("lines")},
            "structs": {**file, **_STRUCT, **_JSON, "topic": self.topic("structs")},
            "rows": {
                **table,
                "mode": "incrementing",
                "incrementing.column.name": "n",
                "table.whitelist": f"{self.word}_in",
                "topic.prefix": self.topic(""),
                "poll.interval.ms": "200",
            },
        }

    def _sinks(self) -> dict[str, dict[str, str]]:
        structs = {"topics": self.topic("structs"), **_JSON}
        return {
            "copy": {
                "connector.class": "FileStreamSink",
                "topics": self.topic("lines"),
                "file": str(self.copy),
            },
            "table": {
                "connector.class": "JdbcSink",
                **structs,
                **self._jdbc,
                "table.name.format": f"{self.word}_out",
                "auto.create": "true",
                "penstock.delivery": "exactly-once",
            },
            "lake": {
                "connector.class": "IcebergSink",
                **structs,
                "iceberg.tables": "db.lines",
                "iceberg.tables.auto-create-enabled": "true",
                "iceberg.catalog.type": "hadoop",
                "iceberg.catalog.warehouse": str(self.folder / "lake"),
            },
        }

    @property
    def _jdbc(self) -> dict[str, str]:
        return {
            "connection.url": f"jdbc:postgresql://{self.postgres.host}:{self.postgres.port}/penstock",
            "connection.user": "penstock",
            "connection.password": PASSWORD,
        }

    def prepare(self) -> None:
        """Make what is read, and the topics."""
        self.folder.mkdir(parents=True)
        self.file.touch()
        with self.postgres.connect() as session:
            session.execute(f"CREATE TABLE {self.word}_in (n bigint PRIMARY KEY)")
        for of in ("lines", "structs", f"{self.word}_in"):
            fill(self.connection, self.topic(of), [])

    # -- the records in each place

    @property
    def _readers(self) -> dict[str, Callable[[], Counter[int]]]:
        """How to count each record in the places that have it once."""
        return {
            "lines": lambda: Counter(map(int, self._values("lines"))),
            "structs": lambda: Counter(int(each["line"]) for each in self._payloads("structs")),
            "rows": lambda: Counter(each["n"] for each in self._payloads(f"{self.word}_in")),
            "table": lambda: Counter(map(int, self._table())),
            "lake": lambda: Counter(map(int, self._lake())),
        }

    def exact(self) -> dict[str, Counter[int]]:
        """Count each record in the places that have it once."""
        return {name: read() for name, read in self._readers.items()}

    def copied(self) -> set[int]:
        """Return the records in the file of the sink; a kill may leave the beginning of a line in it."""
        lines = self.copy.read_text().splitlines() if self.copy.exists() else []
        return {int(line) for line in lines if len(line) == _DIGITS}

    def has(self, count: int) -> bool:
        """Return whether that many records are in every place."""
        return len(self.copied()) >= count and all(
            len(read()) >= count for read in self._readers.values()
        )

    def _values(self, topic: str) -> Iterator[bytes]:
        return (record.value for record in read_all(self.connection, self.topic(topic)))

    def _payloads(self, topic: str) -> Iterator[dict[str, Any]]:
        return (json.loads(value)["payload"] for value in self._values(topic))

    def _table(self) -> list[str]:
        with self.postgres.connect() as session:
            found = session.execute("SELECT to_regclass(%s)", [f"{self.word}_out"]).fetchone()
        return [] if found == (None,) else self.postgres.values(f"{self.word}_out", "line")

    def _lake(self) -> list[str]:
        table = self.folder / "lake" / "db" / "lines"
        if not (table / "metadata" / "version-hint.text").exists():
            return []
        rows = spark_session().read.format("iceberg").load(str(table))
        return rows.toArrow()["line"].to_pylist()


_DIGITS = 9


class Growth:
    """Appends numbers to the file and to the table, until it ends; `sent` is how many."""

    def __init__(self, places: Places) -> None:
        self.sent = 0
        self._places, self._ended = places, Event()
        self._thread = Thread(target=self._write, daemon=True)

    def __enter__(self) -> Growth:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        insert = f"INSERT INTO {self._places.word}_in SELECT generate_series(%s::bigint, %s)"
        with self._places.file.open("a") as file, self._places.postgres.connect() as session:
            while not self._ended.is_set():
                first, end = self.sent, self.sent + _BURST
                file.writelines(f"{n:0{_DIGITS}}\n" for n in range(first, end))
                file.flush()
                session.execute(insert, [first, end - 1])
                self.sent = end
                time.sleep(_BREATH)  # the rate of the load, not a wait


class ConnectorWorkers(Workers):
    """The workers of a store with connectors in place of pipelines."""

    def __init__(self, places: Places, *args: Any, **more: Any) -> None:
        self.places = places
        super().__init__(*args, **more)

    def deploy(self, definition: str = "plain") -> None:
        for name, config in self.places.configs(definition).items():
            before = self.store.deployments.get(name)
            spec = before.spec if before else None
            sealed = self.store.secrets.sealed(name, json.dumps(config), spec)
            self.store.deployments.put(name, Kind.CONNECTOR, sealed, by="a test")

    @property
    def names(self) -> list[str]:
        return list(self.places.configs())

    def needs_java(self, name: str) -> bool:
        """Return whether it is a sink: a source that waits for its next round has nothing in Java."""
        return "Source" not in self.places.configs()[name]["connector.class"]

    def _chosen(self) -> int:
        """Choose a worker that has something to lose."""
        busy = [n for n, each in enumerate(self.processes) if self._held_by(each.pid)]
        return self.dice.choice(busy) if busy else super()._chosen()
