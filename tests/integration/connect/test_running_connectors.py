"""Connectors as pipelines, the whole way: converters, transforms, predicates, rows, errors."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.own_package import installed

from penstock import Connection, imports
from penstock.connect import Key
from penstock.connect.connector_class import Catalog, ConnectorClass, Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import KeyColumns, Rows, Tombstones
from penstock.connect.connectors import CATALOG
from penstock.connect.installed_classes import installed_classes
from penstock.connect.translation import definition_of
from penstock.errors import PipelineFailedError, TransientError
from penstock.formats.connect import INT32, INT64, STRING, Schema, SchemaBuilder
from penstock.formats.connect.json_schemas import to_document
from penstock.kafka import Producer
from penstock.pipeline import Pipeline
from penstock.sinks.connect_errors.error_report import MOST
from penstock.testing import eventually, fill, read_all

JSON = {"value.converter": "JsonConverter"}
PLAIN_JSON = {**JSON, "value.converter.schemas.enable": "false"}
ORDER = SchemaBuilder.struct("Order").field("id", INT32).field("note", STRING.or_null()).build()
Run = Callable[..., Any]


class TableSink(ConnectorClass):
    """The fields of values as rows of a table, as the JDBC sinks have it."""

    names: ClassVar[tuple[str, ...]] = ("example.TableSink",)
    kind: ClassVar[Kind] = "sink"
    rows: ClassVar[Rows] = "fields"
    keys: ClassVar[tuple[Key, ...]] = (Key("file"), Key("pk", default="none"))

    def key_columns(self, config: ConnectorConfig) -> KeyColumns:
        """Return the key of the record, or where it was in Kafka."""
        return KeyColumns.record_key("id") if config["pk"] == "key" else KeyColumns.kafka()

    def tombstones(self, config: ConnectorConfig) -> Tombstones:
        """Return that they delete rows by key."""
        return "delete" if config["pk"] == "key" else "refuse"

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return the table."""
        keyed = {"mode": "upsert", "key": "id", "delete_when": "kafka_tombstone"}
        more = keyed if config["pk"] == "key" else {}
        return {
            "sink": {"database": {"url": f"sqlite:///{config['file']}", "table": "rows", **more}}
        }


class DocumentSink(ConnectorClass):
    """Documents as lines."""

    names: ClassVar[tuple[str, ...]] = ("example.DocumentSink",)
    kind: ClassVar[Kind] = "sink"
    rows: ClassVar[Rows] = "documents"
    keys: ClassVar[tuple[Key, ...]] = (Key("file"),)

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return the lines."""
        joined = "concat_ws('|', coalesce(key, '-'), topic, offset, coalesce(value, '-')) AS value"
        return {
            "steps": [{"sql": f"SELECT {joined} FROM rows"}],
            "sink": {"text_file": {"path": config["file"]}},
        }


CLASSES = Catalog((*CATALOG.classes, TableSink, DocumentSink))


@pytest.fixture
def definition(
    connection: Connection, unique: str, tmp_path: Path
) -> Callable[[dict[str, str]], Pipeline]:
    def make(config: dict[str, str]) -> Pipeline:
        given = {"name": unique, **config}
        classes = Catalog((*CLASSES.classes, *installed_classes()))
        made = definition_of(unique, unique, given, classes)
        return Pipeline(**made, connection=connection, state=str(tmp_path / "state"))

    return make


@pytest.fixture
def run(definition: Any) -> Iterator[Run]:
    """Runs a connector until it has done everything that is there."""

    def once(config: dict[str, str]) -> Any:
        with imports.start(definition(config), once=True) as running:
            assert running.wait(240)
        return running.progress()

    yield once


def chain(**transforms: dict[str, str]) -> dict[str, str]:
    named = {
        f"transforms.{n}.{k}": v for n, options in transforms.items() for k, v in options.items()
    }
    return {"transforms": ",".join(transforms), **named}


def envelope(schema: Schema, payload: Any) -> bytes:
    return json.dumps({"schema": to_document(schema), "payload": payload}).encode()


def send(connection: Connection, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    fill(connection, topic, [])
    with Producer(connection) as producer:
        for key, value in records:
            producer.produce(topic, key, value)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_lines_are_transformed_and_written_with_their_schemas(
    connection: Connection, unique: str, tmp_path: Path, run: Run
) -> None:
    given = tmp_path / "in.txt"
    given.write_text("one\ntwo\n")
    transforms = chain(
        hoist={"type": "HoistField$Value", "field": "line"},
        insert={"type": "InsertField$Value", "topic.field": "origin", "static.field": "by!"}
        | {"static.value": "penstock"},
        route={"type": "RegexRouter", "regex": "(.*)-lines", "replacement": "$1-routed"},
        mark={"type": "InsertHeader", "header": "kind", "value.literal": "7"},
    )
    source = {"connector.class": "FileStreamSource", "file": str(given), "topic": f"{unique}-lines"}
    run({**source, **JSON, **transforms})
    records = read_all(connection, f"{unique}-routed")
    documents = [json.loads(record.value or b"") for record in records]
    assert [each["payload"] for each in documents] == [
        {"line": text, "origin": f"{unique}-lines", "by": "penstock"} for text in ("one", "two")
    ]
    fields = {each["field"]: each for each in documents[0]["schema"]["fields"]}
    assert fields["by"] == {"type": "string", "optional": False, "field": "by"}
    assert [(record.key, list(record.headers)) for record in records] == [
        (None, [("kind", b"7")])
    ] * 2


def test_lines_as_json_need_no_transform(
    connection: Connection, unique: str, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    source = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt")}
    run({**source, "topic": unique, **JSON})
    (record,) = read_all(connection, unique)
    schema = {"type": "string", "optional": False}
    assert json.loads(record.value or b"") == {"schema": schema, "payload": "one"}


def test_a_sink_transforms_filters_and_deletes(
    connection: Connection, unique: str, tmp_path: Path, run: Run
) -> None:
    wide = SchemaBuilder.struct().field("id", INT64).field("a", STRING).field("b", STRING).build()
    key = SchemaBuilder.struct().field("id", INT64).build()
    fill(connection, unique, [])
    with Producer(connection) as producer:
        for n, headers in ((1, ()), (2, ()), (3, [("skip", b"1")]), (4, [("other", None)])):
            value = envelope(wide, {"id": n, "a": f"a{n}", "b": "x"})
            producer.produce(unique, envelope(key, {"id": n}), value, headers=headers)
        producer.produce(unique, envelope(key, {"id": 2}), None)
    file = tmp_path / "rows.db"
    progress = run(
        {
            "connector.class": "TableSink",
            "file": str(file),
            "pk": "key",
            "topics": unique,
            "key.converter": "JsonConverter",
            **JSON,
            **chain(
                drop={"type": "ReplaceField$Value", "exclude": "b", "renames": "a:name"},
                key={"type": "ExtractField$Key", "field": "id"},
                some={"type": "Filter", "predicate": "skipped"},
            ),
            "predicates": "skipped",
            "predicates.skipped.type": "HasHeaderKey",
            "predicates.skipped.name": "skip",
        }
    )
    with sqlite3.connect(file) as database:
        rows = database.execute("SELECT * FROM rows ORDER BY id").fetchall()
    assert rows == [(1, "a1"), (4, "a4")]
    assert (progress.records, progress.rows, progress.failed) == (5, 4, 0)


def test_documents_have_keys_and_values_as_text(
    connection: Connection, unique: str, tmp_path: Path, run: Run
) -> None:
    send(
        connection,
        unique,
        (b'"k"', b'{"a": 1.50}'),
        (b'{"k":1}', None),
        (None, b"[1]"),
        (b"7", b'"t"'),
    )
    config = {"connector.class": "DocumentSink", "file": str(tmp_path / "out"), "topics": unique}
    schemaless = {"key.converter": "JsonConverter", "key.converter.schemas.enable": "false"}
    run({**config, **PLAIN_JSON, **schemaless})
    assert lines(tmp_path / "out") == [
        f'k|{unique}|0|{{"a": 1.50}}',
        f'{{"k":1}}|{unique}|1|-',
        f"-|{unique}|2|[1]",
        f'7|{unique}|3|"t"',
    ]


def test_a_connector_of_another_package_sends_bad_records_to_the_queue_as_connect_does(
    connection: Connection,
    unique: str,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = envelope(ORDER, {"id": 1, "note": "7"})
    bad = envelope(ORDER, {"id": 2, "note": "no number"})
    send(connection, unique, (None, good), (b"k", b"no json"), (b"l", bad))
    queue = f"{unique}-dlq"
    config = {
        "connector.class": "Lines",
        "path": str(tmp_path / "out.json"),
        "topics": unique,
        **JSON,
        **chain(cast={"type": "Cast$Value", "spec": "note:int64"}),
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": queue,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with installed(tmp_path, monkeypatch):
        progress = run(config)
    assert (progress.failed, lines(tmp_path / "out.json")) == (2, ['{"id":1,"note":7}'])
    letters = sorted(read_all(connection, queue), key=lambda each: each.key or b"")
    assert [(each.key, each.value) for each in letters] == [(b"k", b"no json"), (b"l", bad)]
    first, second = (dict(each.headers) for each in letters)
    about = {
        name.removeprefix("__connect.errors."): (data or b"").decode()
        for name, data in first.items()
        if name.startswith("__connect.errors.")
    }
    message = about.pop("exception.message")
    assert message.startswith("MalformedJson: value: not JSON") and message in about.pop(
        "exception.stacktrace"
    )
    assert about == {
        "topic": unique,
        "partition": "0",
        "offset": "1",
        "connector.name": unique,
        "task.id": "0",
        "stage": "VALUE_CONVERTER",
        "class.name": "org.apache.kafka.connect.json.JsonConverter",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
    }
    assert second["__connect.errors.stage"] == b"TRANSFORMATION"
    assert second["__connect.errors.class.name"].endswith(b".Cast$Value")  # type: ignore[union-attr]
    assert (first["penstock.offset"], second["penstock.offset"]) == (b"1", b"2")


def test_a_source_connector_of_another_package_writes_its_schema(
    connection: Connection,
    unique: str,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = tmp_path / "journal"
    journal.write_text('{"id": 1, "note": "a"}\n{"id": 2}\n')
    config = {
        "connector.class": "Journal",
        "path": str(journal),
        "topic": unique,
        **JSON,
        **chain(
            key={"type": "ValueToKey", "fields": "id"},
            id={"type": "ExtractField$Key", "field": "id"},
        ),
    }
    with installed(tmp_path, monkeypatch):
        run(config)
    entry = (
        SchemaBuilder.struct("com.acme.Entry").field("id", INT64).field("note", STRING.or_null())
    )
    assert [(each.key, json.loads(each.value or b"")) for each in read_all(connection, unique)] == [
        (b"1", json.loads(envelope(entry.build(), {"id": 1, "note": "a"}))),
        (b"2", json.loads(envelope(entry.build(), {"id": 2, "note": None}))),
    ]


def test_the_first_bad_record_ends_a_connector_that_tolerates_none(
    connection: Connection, unique: str, tmp_path: Path, definition: Any, caplog: Any
) -> None:
    send(connection, unique, (None, b"good"), (None, b"\xffbad!"))
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out"),
        "topics": unique,
        "value.converter": "IntegerConverter",
        "errors.log.enable": "true",
        "errors.log.include.messages": "true",
    }
    with (
        imports.start(definition(config), once=True) as running,
        pytest.raises(
            PipelineFailedError, match=f"Tolerance exceeded in error handler: record {unique}-0-1: "
        ),
    ):
        running.wait(240)
    assert lines(tmp_path / "out") == ["1735356260"]
    logged = [record for record in caplog.records if record.message == "connect_error"]
    assert [(each.stage, each.offset) for each in logged] == [("VALUE_CONVERTER", "1")]


def test_a_schema_that_changes_while_it_runs_adds_columns(
    connection: Connection, unique: str, tmp_path: Path, definition: Any
) -> None:
    fill(connection, unique, [])
    file = tmp_path / "rows.db"
    config = {"connector.class": "TableSink", "file": str(file), "topics": unique, **JSON}
    newer = SchemaBuilder.struct().field("id", INT32).field("extra", STRING.or_null()).build()

    def rows(columns: str) -> list[Any]:
        with sqlite3.connect(file) as database:
            try:
                return database.execute(f"SELECT {columns} FROM rows ORDER BY 1").fetchall()
            except sqlite3.OperationalError:
                return []

    with pytest.raises(TransientError, match="no record with a schema is in the topics yet"):
        imports.start(definition(config))
    send(connection, unique, (None, envelope(ORDER, {"id": 1, "note": "n"})))
    with imports.start(definition(config)):
        eventually(lambda: rows("id, note") == [(1, "n")], timeout=60)
        send(connection, unique, (None, envelope(newer, {"id": 2, "extra": "e"})))
        expected = [(1, "n", None, 0), (2, None, "e", 1)]
        eventually(lambda: rows("id, note, extra, __connect_offset") == expected, timeout=60)


def test_a_sink_reads_topics_that_match_later(
    connection: Connection, unique: str, definition: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    config = {"connector.class": "FileStreamSink", "topics.regex": f"{unique}-in-.*"}
    fill(connection, f"{unique}-in-a", ["a 1"])
    with imports.start(definition({**config, "file": str(out)})):
        eventually(lambda: out.exists() and out.read_text() == "a 1\n", timeout=60)
        fill(connection, f"{unique}-other", ["other"])
        fill(connection, f"{unique}-in-b", ["b 1", "b 2"])
        fill(connection, f"{unique}-in-a", ["a 2"])
        expected = ["a 1", "a 2", "b 1", "b 2"]
        eventually(lambda: sorted(out.read_text().splitlines()) == expected, timeout=60)


def test_a_source_reads_tables_that_are_created_later(
    connection: Connection, unique: str, definition: Any, tmp_path: Path
) -> None:
    config = {
        "connector.class": "JdbcSource",
        "connection.url": f"jdbc:sqlite:{tmp_path}/shop.db",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": f"{unique}-",
        "poll.interval.ms": "100",
        **PLAIN_JSON,
    }

    def create(table: str, *ids: int) -> None:
        fill(connection, f"{unique}-{table}", [])  # the connector would create it, too
        with sqlite3.connect(tmp_path / "shop.db") as database:
            database.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
            database.executemany(f"INSERT INTO {table} VALUES (?)", [(each,) for each in ids])

    def ids(table: str) -> list[int]:
        records = read_all(connection, f"{unique}-{table}")
        return [json.loads(record.value)["id"] for record in records]

    create("orders", 1)
    with imports.start(definition(config)):
        eventually(lambda: ids("orders") == [1], timeout=180)
        create("items", 7, 8)
        eventually(lambda: ids("items") == [7, 8], timeout=180)
    assert ids("orders") == [1]


@pytest.mark.parametrize("queue", ["queue", ""], ids=["queue", "no queue"])
def test_more_bad_records_than_are_listed_in_the_log(
    connection: Connection, unique: str, tmp_path: Path, definition: Any, caplog: Any, queue: str
) -> None:
    count = MOST + 500
    fill(connection, unique, [b"\xffbad!"] * count)
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out"),
        "topics": unique,
        "value.converter": "IntegerConverter",
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        **({"errors.deadletterqueue.topic.name": f"{unique}.{queue}"} if queue else {}),
        **({"errors.deadletterqueue.topic.replication.factor": "1"} if queue else {}),
    }
    with imports.start(definition(config), once=True) as running:
        assert running.wait(240)
        assert running.progress().failed == count
    logged = [record for record in caplog.records if record.message == "connect_error"]
    assert len(logged) == MOST
    if queue:
        assert len(read_all(connection, f"{unique}.{queue}")) == count
