"""The three sinks of Connect that are compared, set up for throughput, and how their rows are counted."""

from __future__ import annotations

import json
from pathlib import Path

from bench.data import PARTITIONS
from bench.peers.connect import RECORDS_AT_ONCE, Count
from bench.targets import Iceberg, word
from penstock.config import Connection
from penstock.kafka import Admin

_TYPES = {"id": "int64", "symbol": "string", "price": "double", "size": "int32", "side": "string"}
_SCHEMA = {
    "type": "struct",
    "fields": [{"field": name, "type": kind, "optional": True} for name, kind in _TYPES.items()],
}
# The schema stands beside the records (since Kafka 4.2), not in each one: the same topic serves all.
_AS_ROWS = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "true",
    "value.converter.schema.content": json.dumps(_SCHEMA),
}
# One for each partition of the topic.
TASKS = str(PARTITIONS)
# Short, so that the wait for the last commit is; the time-out is for a commit that a task was late for.
COMMIT_MS, COMMIT_TIMEOUT_MS = "2000", "5000"


def file_sink(topic: str, path: Path) -> dict[str, str]:
    """Each record's text as a line, unread; one task, as there is one file."""
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "topics": topic,
        "tasks.max": "1",
        "file": str(path),
    }


def row_sink(topic: str, path: Path) -> dict[str, str]:
    """Each record read as a row with the declared columns, and printed as a line."""
    return file_sink(topic, path) | _AS_ROWS


def lines_in(path: Path) -> Count:
    """Count the lines; what was read once is not read again."""
    seen = lines = 0

    def count() -> int:
        nonlocal seen, lines
        if path.exists():
            with path.open("rb") as file:
                file.seek(seen)
                while chunk := file.read(1 << 20):
                    seen += len(chunk)
                    lines += chunk.count(b"\n")
        return lines

    return count


def iceberg_sink(topic: str, target: Iceberg, name: str, connection: Connection) -> dict[str, str]:
    """Iceberg's own sink, with the topic through which its tasks agree on commits."""
    control = f"{name}-control"
    with Admin(connection) as admin:
        admin.create_topic(control, 1)
    return _AS_ROWS | {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": topic,
        "tasks.max": TASKS,
        "iceberg.tables": f"lake.{word(name)}",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": target.scratch.as_uri(),
        "iceberg.control.topic": control,
        "iceberg.control.commit.interval-ms": COMMIT_MS,
        "iceberg.control.commit.timeout-ms": COMMIT_TIMEOUT_MS,
        "iceberg.kafka.bootstrap.servers": connection.brokers,
    }


def jdbc_sink(topic: str, url: str, login: dict[str, str], table: str) -> dict[str, str]:
    """Debezium's sink: inserts in large batches, by the way that served it best."""
    return _AS_ROWS | {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": topic,
        "tasks.max": TASKS,
        "connection.url": f"{url}?reWriteBatchedInserts=true",
        "connection.username": login["user"],
        "connection.password": login["password"],
        "collection.name.format": table,
        "insert.mode": "insert",
        "primary.key.mode": "none",
        "schema.evolution": "none",
        "batch.size": RECORDS_AT_ONCE,
        "dialect.postgres.unnest.insert.enabled": "true",
    }
