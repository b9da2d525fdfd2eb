"""Connectors of widespread classes with real systems: databases, a search index, HTTP, Iceberg, Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.services.json_api import Answer, JsonApi
from tests.services.opensearch import OpenSearch
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection, imports
from penstock.connect.connectors import CATALOG
from penstock.connect.translation import definition_of
from penstock.connect.validation import validate, with_name
from penstock.engine import spark_session
from penstock.errors import ConfigError
from penstock.kafka import Producer
from penstock.pipeline import Pipeline
from penstock.testing import fill, read_all

JSON = {"key.converter": "JsonConverter", "value.converter": "JsonConverter"}
PLAIN_JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
Run = Callable[[dict[str, str]], Any]
Record = tuple[Any, Any]


@pytest.fixture
def run(connection: Connection, unique: str, tmp_path: Path) -> Run:
    """Checks a configuration, and runs it until it has done everything that is there."""

    def once(config: dict[str, str]) -> Any:
        given = with_name(config, unique)
        assert validate(CATALOG, given).errors == []
        made = definition_of(unique, unique, given, CATALOG)
        pipeline = Pipeline(**made, connection=connection, state=str(tmp_path / "state"))
        with imports.start(pipeline, once=True) as running:
            assert running.wait(120)
        return running.progress()

    return once


def typed(fields: dict[str, str], payload: dict[str, Any] | None) -> bytes | None:
    """Return a struct with its schema, as JsonConverter writes it."""
    if payload is None:
        return None
    declared = [{"field": name, "type": kind, "optional": True} for name, kind in fields.items()]
    schema = {"type": "struct", "optional": False, "fields": declared}
    return json.dumps({"schema": schema, "payload": payload}).encode()


def send(connection: Connection, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    fill(connection, topic, [])
    with Producer(connection) as producer:
        for key, value in records:
            producer.produce(topic, key, value)


def jdbc(postgres: Postgres) -> dict[str, str]:
    return {
        "connection.url": f"jdbc:postgresql://{postgres.host}:{postgres.port}/penstock?ssl=false",
        "connection.user": "penstock",
        "connection.password": PASSWORD,
    }


def test_a_jdbc_sink_merges_deletes_and_follows_the_records(
    connection: Connection, unique: str, postgres: Postgres, run: Run
) -> None:
    table = unique.replace("-", "_")
    key, value = {"id": "int64"}, {"name": "string", "price": "double", "hidden": "string"}

    def order(number: int, name: str | None, **more: Any) -> tuple[bytes | None, bytes | None]:
        own = None if name is None else {"name": name, "hidden": "x", **more}
        return typed(key, {"id": number}), typed({**value, **dict.fromkeys(more, "int32")}, own)

    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": f"shop.{unique}",
        **jdbc(postgres),
        **JSON,
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "pk.fields": "id",
        "delete.enabled": "true",
        "auto.create": "true",
        "auto.evolve": "true",
        "fields.whitelist": "name,price,count",
        "table.name.format": "${topic}",
        "transforms": "table",
        "transforms.table.type": "RegexRouter",
        "transforms.table.regex": "shop\\..*",
        "transforms.table.replacement": table,
    }
    send(connection, f"shop.{unique}", order(1, "a"), order(2, "b"), order(1, "c"), order(2, None))
    run(config)
    with postgres.connect() as session:
        assert session.execute(f"SELECT id, name, price FROM {table}").fetchall() == [
            (1, "c", None)
        ]
    send(
        connection, f"shop.{unique}", order(1, None), order(3, "d", count=4), order(3, "e", count=5)
    )
    run(config)
    with postgres.connect() as session:
        found = session.execute(f"SELECT id, name, count FROM {table}").fetchall()
        assert found == [(3, "e", 5)]
        with pytest.raises(Exception, match="hidden"):
            session.execute(f"SELECT hidden FROM {table}")


def test_a_jdbc_source_reads_new_rows_and_transforms_them(
    connection: Connection, unique: str, postgres: Postgres, run: Run
) -> None:
    table = unique.replace("-", "_")
    with postgres.connect() as session:
        session.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, name text, price numeric(8, 2))"
        )
        session.execute(f"INSERT INTO {table} VALUES (1, 'a', 1.5), (2, NULL, NULL)")
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        **jdbc(postgres),
        **JSON,
        "value.converter.decimal.format": "NUMERIC",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": table,
        "topic.prefix": "pg-",
        "validate.non.null": "false",
    }
    run(config)
    first = read_all(connection, f"pg-{table}")
    assert [record.key for record in first] == [None, None]
    documents = [json.loads(record.value or b"") for record in first]
    assert [each["payload"] for each in documents] == [
        {"id": 1, "name": "a", "price": 1.5},
        {"id": 2, "name": None, "price": None},
    ]
    kinds = {each["field"]: each["type"] for each in documents[0]["schema"]["fields"]}
    assert kinds == {"id": "int32", "name": "string", "price": "bytes"}

    with postgres.connect() as session:
        session.execute(f"INSERT INTO {table} VALUES (3, 'c', 2)")
    keyed = {
        "transforms": "make,take",
        "transforms.make.type": "ValueToKey",
        "transforms.make.fields": "id",
        "transforms.take.type": "ExtractField$Key",
        "transforms.take.field": "id",
        "key.converter": "IntegerConverter",
        "numeric.mapping": "best_fit",
    }
    run({**config, **PLAIN_JSON, **keyed})
    (last,) = read_all(connection, f"pg-{table}")[2:]
    value = {"id": 3, "name": "c", "price": 2.0}
    assert (last.key, json.loads(last.value or b"")) == (b"\0\0\0\3", value)


def test_a_search_sink_writes_each_topic_to_its_index_and_deletes(
    connection: Connection, unique: str, opensearch: OpenSearch, run: Run
) -> None:
    orders, people = f"Orders-{unique}", f"People-{unique}"
    send(
        connection,
        orders,
        (b"1", b'{"n": 1}'),
        (b"2", b'{"n": 2}'),
        (b"1", b'{"n": 3}'),
        (b"2", None),
    )
    send(connection, people, (b"x", b'{"name": "x"}'), (b"y", b"no json"))
    config = {
        "connector.class": "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        "topics": f"{orders},{people}",
        "connection.url": opensearch.url,
        "behavior.on.null.values": "DELETE",
        "behavior.on.malformed.documents": "WARN",
        "errors.tolerance": "all",
        "topic.index.map": f"{people}:persons-{unique}",
        "schema.ignore": "true",
    }
    progress = run({**config, **PLAIN_JSON})

    assert opensearch.documents(orders.lower()) == {"1": {"n": 3}}
    assert opensearch.documents(f"persons-{unique}") == {"x": {"name": "x"}}
    assert progress.failed == 1
    # Versions are offsets, as those of the connector in Kafka Connect.
    assert opensearch.ask("GET", f"/{orders.lower()}/_doc/1")["_version"] == 2


def test_an_http_sink_names_topic_and_key_and_leaves_out_tombstones(
    connection: Connection, unique: str, run: Run
) -> None:
    send(connection, unique, (b"a b", b'{"n": 1}'), (b"c", None), (b"d", b'{"n": 2}'))
    with JsonApi(lambda _: Answer({})) as api:
        run(
            {
                "connector.class": "io.confluent.connect.http.HttpSinkConnector",
                "topics": unique,
                "http.api.url": f"{api.url}/api/${{topic}}/${{key}}",
                "request.method": "PUT",
                "headers": "X-Source:kafka|X-Other:1",
                "auth.type": "BASIC",
                "connection.user": "admin",
                "connection.password": "hunter2-secret",
                **PLAIN_JSON,
            }
        )
    sent = [(each.method, each.path, json.loads(each.body)) for each in api.requests]
    assert sent == [
        ("PUT", f"/items/api/{unique}/a%20b", {"n": 1}),
        ("PUT", f"/items/api/{unique}/d", {"n": 2}),
    ]
    headers = {name.lower(): value for name, value in api.requests[0].headers.items()}
    assert headers["x-source"] == "kafka"
    assert headers["authorization"].startswith("Basic ")


def test_an_iceberg_sink_creates_and_changes_a_table_only_if_it_may(
    connection: Connection, unique: str, tmp_path: Path, run: Run
) -> None:
    value = {"id": "int32", "name": "string"}
    send(connection, unique, *((None, typed(value, {"id": n, "name": f"n{n}"})) for n in (1, 2)))
    config = {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": unique,
        "iceberg.tables": "shop.orders",
        "iceberg.tables.default-partition-by": "bucket(id, 4)",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": str(tmp_path / "warehouse"),
        # One more setting than a folder needs: the sink has a catalog of its own.
        "iceberg.catalog.io.manifest.cache-enabled": "false",
        "iceberg.control.topic": "control",
        **JSON,
    }
    with pytest.raises(ConfigError, match="'create' is false: create it for the columns id:int"):
        run(config)
    run({**config, "iceberg.tables.auto-create-enabled": "true"})
    send(connection, unique, (None, typed({**value, "more": "int64"}, {"id": 3, "more": 5})))
    with pytest.raises(ConfigError, match=r"lacks columns or types of the rows \(more\)"):
        run(config)
    run({**config, "iceberg.tables.evolve-schema-enabled": "true"})

    rows = spark_session().read.format("iceberg").load(str(tmp_path / "warehouse/shop/orders"))
    assert sorted(map(tuple, rows.collect()), key=str) == [
        (1, "n1", None),
        (2, "n2", None),
        (3, None, 5),
    ]


def test_a_mirror_source_copies_topics_under_the_name_of_their_cluster(
    connection: Connection, unique: str, run: Run
) -> None:
    send(connection, f"{unique}-a", (b"k", b"\xff"), (None, None))
    run(
        {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": "west",
            "source.cluster.bootstrap.servers": connection.brokers,
            "target.cluster.bootstrap.servers": connection.brokers,
            "topics": f"{unique}-.*",
        }
    )
    copied = read_all(connection, f"west.{unique}-a")
    assert [(record.key, record.value) for record in copied] == [(b"k", b"\xff"), (None, None)]


def test_a_connector_of_a_component_writes_rows_with_its_own_options(
    connection: Connection, unique: str, postgres: Postgres, run: Run
) -> None:
    table = unique.replace("-", "_")
    value = {"name": "string"}
    send(
        connection, unique, (b"1", typed(value, {"name": "a"})), (b"2", typed(value, {"name": "b"}))
    )
    send(connection, unique, (b"2", None))
    run(
        {
            "connector.class": "PenstockDatabaseSink",
            "topics": unique,
            "url": postgres.url,
            "password": PASSWORD,
            "table": table,
            "mode": "upsert",
            "key": "id",
            "penstock.key.mode": "record_key",
            "penstock.key.fields": "id",
            "penstock.tombstones": "delete",
            "penstock.metadata": "offset",
            "penstock.delivery": "exactly-once",
            "value.converter": "JsonConverter",
        }
    )
    with postgres.connect() as session:
        found = session.execute(f"SELECT id, name, kafka_offset FROM {table}").fetchall()
    assert found == [("1", "a", 0)]
