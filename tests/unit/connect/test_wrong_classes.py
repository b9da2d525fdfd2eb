"""Configurations that connectors refuse, with the key and the words of each error, and warnings."""

from __future__ import annotations

import pytest
from tests.services.connect_classes import EXAMPLES

from penstock.connect.connectors import CATALOG
from penstock.connect.validation import validate, with_name

# An example, what is changed in it (None: left out), the key that has the error, and a part of the error.
Wrong = tuple[str, dict[str, str | None], str, str]
WRONG: list[Wrong] = [
    (
        "jdbc-insert",
        {"connection.url": "jdbc:oracle:thin:@db:1521:x"},
        "connection.url",
        "cannot be used; allowed: jdbc:postgresql://HOST/DATABASE",
    ),
    (
        "jdbc-insert",
        {"connection.url": "jdbc:postgresql://db/shop?unknownParameter=1"},
        "connection.url",
        "the parameter 'unknownParameter' of the address has no equivalent here",
    ),
    (
        "jdbc-insert",
        {"connection.url": "jdbc:mariadb://db/shop?useSSL=true"},
        "connection.url",
        "give the file of the authorities (PEM) as 'serverSslCert'",
    ),
    (
        "elasticsearch",
        {"connection.url": "http://app:x@search:9200"},
        "connection.url",
        "the address contains a user; give it in connection.username",
    ),
    (
        "http",
        {"http.api.url": "http://app:x@api/v1"},
        "http.api.url",
        "the address contains a user; give auth.type=BASIC with connection.user",
    ),
    (
        "aiven-http",
        {"http.url": "http://app:x@api/v1"},
        "http.url",
        "the address contains a user; give http.authorization.type=static",
    ),
    ("jdbc-insert", {"connection.url": None}, "connection.url", "Missing required configuration"),
    (
        "jdbc-insert",
        {"connection.oracle.net.encryption": "x"},
        "connection.oracle.net.encryption",
        "properties of JDBC drivers have no equivalent",
    ),
    (
        "jdbc-insert",
        {"insert.mode": "upsert"},
        "pk.mode",
        "insert.mode is upsert, which needs a key: give record_key, record_value or kafka",
    ),
    (
        "jdbc-insert",
        {"topics.to.tables.mapping": "orders"},
        "table.name.format",
        "'orders' in topics.to.tables.mapping is not TOPIC:TABLE",
    ),
    ("jdbc-insert", {"insert.mode": "merge"}, "insert.mode", "String must be one of"),
    (
        "jdbc-insert",
        {"delete.enabled": "true"},
        "delete.enabled",
        "a tombstone has only a key; give pk.mode=record_key",
    ),
    (
        "jdbc-insert",
        {"delete.enabled": "true", "pk.mode": "record_key", "pk.fields": "id"},
        "delete.enabled",
        "give insert.mode=upsert",
    ),
    (
        "jdbc-upsert",
        {"pk.fields": None},
        "pk.fields",
        "name the columns of the key: the table's key is known before the first record",
    ),
    (
        "jdbc-renamed-topics",
        {"pk.fields": "topic,offset"},
        "pk.fields",
        "with kafka there are three columns, for topic, partition and offset; given 2",
    ),
    (
        "jdbc-insert",
        {"topics": "orders,customers"},
        "table.name.format",
        "a connector writes one table here, and the topics would need several: orders, customers",
    ),
    (
        "jdbc-insert",
        {"topics": None, "topics.regex": "shop.*"},
        "table.name.format",
        "list the topics in 'topics', or give a name without ${topic}",
    ),
    (
        "jdbc-insert",
        {"table.name.format": "a.b.${topic}"},
        "table.name.format",
        "'a.b.orders' has more than one dot, and a table is name or schema.name",
    ),
    (
        "jdbc-renamed-topics",
        {"transforms.last.predicate": "p"},
        "table.name.format",
        "the transform 'last' changes the topic and is subject to a predicate",
    ),
    ("jdbc-insert", {"db.timezone": "Europe/Paris"}, "db.timezone", "times are in UTC here"),
    (
        "jdbc-mysql",
        {"penstock.delivery": "exactly-once"},
        "penstock.delivery",
        "only PostgreSQL, MariaDB and SQLite have tested transactions",
    ),
    (
        "debezium",
        {"primary.key.mode": "record_header"},
        "primary.key.mode",
        "a key cannot be made of headers",
    ),
    (
        "debezium",
        {"collection.name.format": "${source.table}"},
        "collection.name.format",
        "records are flat here and have no source",
    ),
    (
        "debezium",
        {"field.include.list": "other:id"},
        "field.include.list",
        "'other:id' is of a topic that this connector does not read",
    ),
    ("debezium", {"truncate.enabled": "true"}, "truncate.enabled", "no record empties the table"),
    (
        "debezium",
        {"hibernate.dialect": "x"},
        "hibernate.dialect",
        "there is no Hibernate here",
    ),
    (
        "jdbc-source-incrementing",
        {"incrementing.column.name": None},
        "incrementing.column.name",
        "name the column; it is not looked for",
    ),
    (
        "jdbc-source-query",
        {"timestamp.column.name": "changed,created"},
        "timestamp.column.name",
        "one column has the time of a change",
    ),
    (
        "jdbc-source-query",
        {"table.whitelist": "orders"},
        "query",
        "it is in place of tables, and table.whitelist has some; give one of the two",
    ),
    (
        "jdbc-source-query",
        {"timestamp.initial.ms": "1700000000000"},
        "timestamp.initial.ms",
        "a source begins with the first row; change its offsets",
    ),
    (
        "jdbc-source-query",
        {"timestamp.column.name": None},
        "mode",
        "which needs 'timestamp_column': name the column",
    ),
    (
        "jdbc-source-all-tables",
        {"table.blacklist": "audit"},
        "table.blacklist",
        "name the tables in table.whitelist",
    ),
    (
        "jdbc-source-all-tables",
        {"numeric.mapping": "exact"},
        "numeric.mapping",
        "String must be one of (case insensitive): none, precision_only, best_fit",
    ),
    ("jdbc-source-all-tables", {"mode": None}, "mode", "Missing required configuration"),
    (
        "jdbc-source-query",
        {"query": "DELETE FROM orders"},
        "query",
        "a query is one SELECT",
    ),
    (
        "iceberg-folder",
        {"iceberg.tables": "default.a,default.b"},
        "iceberg.tables",
        "a connector writes one table; create one for each table",
    ),
    (
        "iceberg-folder",
        {"iceberg.tables.route-field": "kind"},
        "iceberg.tables.route-field",
        "Configuration iceberg.tables.route-field is not supported here",
    ),
    (
        "iceberg-folder",
        {"iceberg.table.default.other.id-columns": "id"},
        "iceberg.table.default.other.id-columns",
        "a connector writes one table",
    ),
    (
        "iceberg-folder",
        {"iceberg.tables.upsert-mode-enabled": "true"},
        "iceberg.tables.default-id-columns",
        "iceberg.tables.upsert-mode-enabled is true, which needs a key",
    ),
    (
        "iceberg-folder",
        {"iceberg.catalog.type": None, "iceberg.catalog.warehouse": None},
        "iceberg.catalog.type",
        "give the catalog, as hadoop or rest",
    ),
    (
        "elasticsearch",
        {"behavior.on.null.values": "delete"},
        "behavior.on.null.values",
        "a document is deleted by the record's key, and key.ignore is true",
    ),
    (
        "elasticsearch",
        {"write.method": "upsert"},
        "write.method",
        "it changes a document that has an id, and key.ignore is true",
    ),
    (
        "elasticsearch",
        {"behavior.on.malformed.documents": "warn"},
        "behavior.on.malformed.documents",
        "give errors.tolerance=all",
    ),
    (
        "elasticsearch",
        {"connection.password": None},
        "connection.password",
        "give user and password, or neither",
    ),
    (
        "elasticsearch",
        {"elastic.https.ssl.keystore.location": "x.jks"},
        "elastic.https.ssl.keystore.location",
        "give the authorities (PEM) in penstock.ca",
    ),
    (
        "elasticsearch",
        {"connection.url": "localhost:9200"},
        "connection.url",
        "allowed: http://HOST/PATH",
    ),
    (
        "opensearch",
        {"topic.index.map": "orders"},
        "topic.index.map",
        "'orders' is not topic:name",
    ),
    (
        "opensearch",
        {"data.stream.type": "logs"},
        "data.stream.type",
        "use PenstockOpensearchSink with data_stream",
    ),
    (
        "http",
        {"behavior.on.null.values": "delete"},
        "behavior.on.null.values",
        "one connector sends one method",
    ),
    ("http", {"connection.user": None}, "connection.user", "auth.type is basic, which needs it"),
    (
        "http",
        {"retry.on.status.codes": "5xx"},
        "retry.on.status.codes",
        "'5xx' is not a status, as 429, or a range",
    ),
    ("http", {"headers": "X-Source"}, "headers", "a header is name:value"),
    (
        "http",
        {"batch.max.size": "10", "batch.json.as.array": "true"},
        "http.api.url",
        "a request of several rows has one address",
    ),
    (
        "http-batches",
        {"batch.json.as.array": None, "batch.separator": ";"},
        "batch.separator",
        "the records of a request are a JSON array",
    ),
    ("http-batches", {"auth.type": "SSL"}, "auth.type", "certificates of clients are not sent"),
    (
        "aiven-http",
        {"http.ssl.trust.all.certs": "true"},
        "http.ssl.trust.all.certs",
        "certificates are always checked",
    ),
    (
        "aiven-http",
        {"http.authorization.type": "oauth2"},
        "oauth2.access.token.url",
        "http.authorization.type is oauth2, which needs it",
    ),
    (
        "mirror",
        {"value.converter": "JsonConverter"},
        "value.converter",
        "a mirror copies records as they are: give ByteArrayConverter",
    ),
    (
        "mirror",
        {"source.cluster.ssl.truststore.location": "x.jks"},
        "source.cluster.bootstrap.servers",
        "a key store of Java cannot be read; give a PEM file",
    ),
    (
        "mirror",
        {"replication.policy.class": "my.Policy"},
        "replication.policy.class",
        "classes of Java are not loaded",
    ),
    (
        "mirror",
        {"sync.topic.acls.enabled": "true"},
        "sync.topic.acls.enabled",
        "rights (ACLs) of topics are not copied",
    ),
    ("mirror", {"topics": "orders("}, "topics", "is not a regular expression"),
    (
        "penstock-opensearch",
        {"operation": "replace"},
        "operation",
        "String must be one of: index, create, upsert, delete",
    ),
    ("penstock-delta", {"compact.every": "soon"}, "compact.every", "a duration is a number"),
    (
        "penstock-delta",
        {"penstock.metadata": "key"},
        "penstock.metadata",
        "allowed: topic, partition",
    ),
    ("penstock-kafka", {"topic": None}, "topic", "Missing required configuration"),
    (
        "penstock-rabbitmq",
        {"key": "nothing"},
        "key",
        "message_id",
    ),
]


def changed(name: str, changes: dict[str, str | None]) -> dict[str, str]:
    given = {**EXAMPLES[name].config, **changes}
    return with_name({key: value for key, value in given.items() if value is not None}, "c")


@pytest.mark.parametrize(("name", "changes", "key", "text"), WRONG)
def test_what_is_wrong_is_said_at_its_key(
    name: str, changes: dict[str, str | None], key: str, text: str
) -> None:
    found = validate(CATALOG, changed(name, changes))

    errors = {each.key.name: each.errors for each in found.checked if each.errors}
    assert any(text in error for error in errors.get(key, ())), errors
    assert "hunter2" not in str(errors)


def warnings(name: str, changes: dict[str, str | None]) -> dict[str, str]:
    given = changed(name, changes)
    kind = CATALOG.find(given["connector.class"])
    return dict(kind().warnings(CATALOG.config(given)))


BATCH = "a batch has all records that have come, and is one transaction"
RETRY = "an operation that fails because a system is away is repeated until it succeeds"
CONTROL = "a batch is one commit, with its offsets, and needs no topic for control"
TARGET = "the target is the default connection of the workers"
WARNED: list[tuple[str, dict[str, str | None], dict[str, str]]] = [
    (
        "jdbc-upsert",
        {},
        {
            "batch.size": f"has no effect here: {BATCH}",
            "connection.attempts": f"has no effect here: {RETRY}",
        },
    ),
    (
        "jdbc-insert",
        {"pk.field": "id", "value.converter.schemas.enable": "true"},
        {
            "pk.field": "is not known to this connector, and has no effect; did you mean 'pk.fields'?"
        },
    ),
    (
        "jdbc-insert",
        {"pk.fields": "id"},
        {"pk.fields": "has no effect here: pk.mode is none"},
    ),
    (
        "jdbc-source-query",
        {"mode": "timestamp", "schema.pattern": "public"},
        {
            "incrementing.column.name": "has no effect here: mode is timestamp",
            "schema.pattern": "has no effect here: the query names its tables",
        },
    ),
    (
        "iceberg-folder",
        {"iceberg.tables.default-id-columns": "id"},
        {
            "iceberg.control.commit.interval-ms": f"has no effect here: {CONTROL}",
            "iceberg.tables.default-id-columns": "has no effect here: rows are appended; for a merge "
            "give iceberg.tables.upsert-mode-enabled=true",
        },
    ),
    ("mirror", {}, {"target.cluster.bootstrap.servers": f"has no effect here: {TARGET}"}),
    (
        "penstock-kafka",
        {"linger": "5"},
        {"linger": "is not known to this connector, and has no effect"},
    ),
]


@pytest.mark.parametrize(("name", "changes", "expected"), WARNED)
def test_keys_without_effect_and_unknown_ones_are_warnings(
    name: str, changes: dict[str, str | None], expected: dict[str, str]
) -> None:
    assert validate(CATALOG, changed(name, changes)).errors == []
    assert warnings(name, changes) == {key: f"{key} {why}" for key, why in expected.items()}


def test_values_that_only_workers_know_are_left_to_them() -> None:
    for name, changes in {
        "jdbc-insert": {"connection.url": "${env:SHOP_URL}", "connection.user": "${env:SHOP_USER}"},
        "http": {"http.api.url": "${file:/run/secrets/url}"},
        "mirror": {"source.cluster.bootstrap.servers": "${env:BROKERS}"},
        "penstock-delta": {"compact.every": "${env:EVERY}"},
    }.items():
        assert validate(CATALOG, changed(name, dict(changes))).errors == [], name
