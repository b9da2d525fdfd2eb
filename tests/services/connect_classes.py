"""Typical configurations of each class, and the part of the pipeline that each becomes."""

from __future__ import annotations

from typing import Any, NamedTuple


class Example(NamedTuple):
    """A configuration without name, and what is expected of its definition."""

    config: dict[str, str]
    source: dict[str, Any] | None = None
    sink: dict[str, Any] | None = None
    steps: list[Any] | None = None
    delivery: str = "at-least-once"


_JDBC = {
    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
    "topics": "orders",
    "connection.url": "jdbc:postgresql://db:5432/shop?sslmode=require",
    "connection.user": "app",
    "connection.password": "hunter2-secret",
}
_DATABASE = {
    "url": "postgresql://app@db:5432/shop?sslmode=require",
    "password": "hunter2-secret",
}
_SOURCE = {
    "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
    "connection.url": "jdbc:mysql://db:3306/shop?user=app&password=hunter2-secret&useSSL=false",
    "topic.prefix": "mysql-",
}
_READ = {"url": "mysql://app@db:3306/shop", "password": "hunter2-secret", "key": [], "tasks_max": 1}
_SEARCH = {"url": ["http://localhost:9200"], "index": "{topic}", "value": "value"}

EXAMPLES = {
    "jdbc-insert": Example(
        _JDBC,
        sink={
            "database": {
                **_DATABASE,
                "table": "orders",
                "mode": "append",
                "create": False,
                "evolve": False,
            }
        },
    ),
    "jdbc-upsert": Example(
        {
            **_JDBC,
            "connector.class": "JdbcSink",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "pk.fields": "id",
            "delete.enabled": "true",
            "auto.create": "true",
            "auto.evolve": "true",
            "table.name.format": "public.kafka_${topic}",
            "batch.size": "500",
            "connection.attempts": "5",
        },
        sink={
            "database": {
                **_DATABASE,
                "table": "public.kafka_orders",
                "mode": "upsert",
                "key": ["id"],
                "delete_when": "kafka_tombstone",
                "create": True,
                "evolve": True,
            }
        },
    ),
    "jdbc-renamed-topics": Example(
        {
            **_JDBC,
            "topics": "eu.shop.orders,us.shop.orders",
            "transforms": "last",
            "transforms.last.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.last.regex": ".*\\.(.*)",
            "transforms.last.replacement": "$1",
            "pk.mode": "kafka",
            "insert.mode": "upsert",
            "penstock.delivery": "exactly-once",
        },
        sink={
            "database": {
                **_DATABASE,
                "table": "orders",
                "mode": "upsert",
                "key": ["__connect_topic", "__connect_partition", "__connect_offset"],
                "create": False,
                "evolve": False,
            }
        },
        delivery="exactly-once",
    ),
    "jdbc-mysql": Example(
        {
            **_JDBC,
            "connector.class": "io.aiven.connect.jdbc.JdbcSinkConnector",
            "connection.url": "jdbc:mysql://db/shop",
            "topics": "a,b",
            "topics.to.tables.mapping": "a:things,b:things",
        },
        sink={
            "database": {
                "url": "mysql+pymysql://app@db/shop",
                "password": "hunter2-secret",
                "table": "things",
                "mode": "append",
                "create": False,
                "evolve": False,
            }
        },
    ),
    "debezium": Example(
        {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "topics": "inventory.public.orders",
            "connection.url": "jdbc:mariadb://db/shop",
            "connection.username": "app",
            "connection.password": "${env:DB_PASSWORD}",
            "insert.mode": "upsert",
            "delete.enabled": "true",
            "primary.key.mode": "record_key",
            "primary.key.fields": "id",
            "schema.evolution": "basic",
            "field.include.list": "inventory.public.orders:id,name",
        },
        sink={
            "database": {
                "url": "mariadb://app@db/shop",
                "password": "${env:DB_PASSWORD}",
                "table": "inventory_public_orders",
                "mode": "upsert",
                "key": ["id"],
                "delete_when": "kafka_tombstone",
                "create": True,
                "evolve": True,
            }
        },
    ),
    "jdbc-source-incrementing": Example(
        {
            **_SOURCE,
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "table.whitelist": "orders,customers",
            "tasks.max": "3",
            "poll.interval.ms": "2000",
        },
        source={
            "database": {
                **_READ,
                "tables": ["orders", "customers"],
                "mode": "incrementing",
                "incrementing_column": "id",
                "topic": "mysql-{table}",
                "poll": 2.0,
                "tasks_max": 3,
            }
        },
    ),
    "jdbc-source-query": Example(
        {
            **_SOURCE,
            "connector.class": "io.aiven.connect.jdbc.JdbcSourceConnector",
            "mode": "timestamp+incrementing",
            "incrementing.column.name": "id",
            "timestamp.column.name": "changed",
            "query": "SELECT id, changed FROM orders",
            "topic.prefix": "orders",
            "timestamp.delay.interval.ms": "1500",
        },
        source={
            "database": {
                **_READ,
                "query": "SELECT id, changed FROM orders",
                "mode": "timestamp+incrementing",
                "incrementing_column": "id",
                "timestamp_column": "changed",
                "topic": "orders",
                "poll": 5.0,
                "delay": 1.5,
            }
        },
    ),
    "jdbc-source-all-tables": Example(
        {**_SOURCE, "mode": "bulk", "schema.pattern": "sales%", "numeric.mapping": "best_fit"},
        source={
            "database": {
                **_READ,
                "tables": ["sales*.*"],
                "mode": "bulk",
                "topic": "mysql-{table}",
                "poll": 5.0,
                "numbers": "best_fit",
            }
        },
    ),
    "iceberg-folder": Example(
        {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "topics": "events",
            "iceberg.tables": "default.events",
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.evolve-schema-enabled": "true",
            "iceberg.tables.default-partition-by": "day(at), bucket(id, 16)",
            "iceberg.catalog.type": "hadoop",
            "iceberg.catalog.warehouse": "/data/warehouse",
            "iceberg.control.commit.interval-ms": "60000",
        },
        sink={
            "iceberg": {
                "table": "default.events",
                "warehouse": "/data/warehouse",
                "mode": "append",
                "partition_by": ["days(at)", "bucket(16, id)"],
                "create": True,
                "evolve": True,
            }
        },
        delivery="exactly-once",
    ),
    "iceberg-rest": Example(
        {
            "connector.class": "IcebergSink",
            "topics": "events",
            "iceberg.tables": "default.events",
            "iceberg.tables.upsert-mode-enabled": "true",
            "iceberg.table.default.events.id-columns": "id, region",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": "http://catalog:8181",
            "iceberg.catalog.warehouse": "s3://bucket/warehouse",
            "iceberg.catalog.credential": "hunter2-secret",
            "iceberg.hadoop.fs.s3a.endpoint": "http://minio:9000",
        },
        sink={
            "iceberg": {
                "table": "default.events",
                "catalog": {
                    "type": "rest",
                    "uri": "http://catalog:8181",
                    "warehouse": "s3://bucket/warehouse",
                    "credential": "hunter2-secret",
                    "hadoop.fs.s3a.endpoint": "http://minio:9000",
                },
                "mode": "upsert",
                "key": ["id", "region"],
                "create": False,
                "evolve": False,
            }
        },
        delivery="exactly-once",
    ),
    "elasticsearch": Example(
        {
            "connector.class": "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
            "topics": "orders,customers",
            "connection.url": "http://localhost:9200",
            "connection.username": "elastic",
            "connection.password": "hunter2-secret",
            "key.ignore": "true",
            "schema.ignore": "true",
            "type.name": "_doc",
        },
        sink={
            "opensearch": {
                **_SEARCH,
                "operation": "index",
                "delete_null": False,
                "auth": {"basic": {"username": "elastic", "password": "hunter2-secret"}},
                "gzip": False,
                "batch_bytes": 5242880,
            }
        },
        steps=[],
    ),
    "opensearch": Example(
        {
            "connector.class": "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector",
            "topics": "orders",
            "connection.url": "http://localhost:9200",
            "behavior.on.null.values": "delete",
            "index.write.method": "insert",
            "topic.index.map": "orders:shop-orders",
            "batch.size": "1000",
        },
        sink={
            "opensearch": {
                **_SEARCH,
                "id": "key",
                "operation": "index",
                "version": "offset",
                "delete_null": True,
                "gzip": False,
                "batch_bytes": 5242880,
            }
        },
        steps=[
            {
                "sql": "SELECT key, value, partition, offset, timestamp, headers, CASE topic WHEN "
                "'orders' THEN 'shop-orders' ELSE topic END AS topic FROM rows"
            }
        ],
    ),
    "http": Example(
        {
            "connector.class": "io.confluent.connect.http.HttpSinkConnector",
            "topics": "orders",
            "http.api.url": "http://localhost:8080/api/${topic}/${key}",
            "request.method": "put",
            "headers": "X-Source:kafka|Accept:text/plain",
            "auth.type": "basic",
            "connection.user": "admin",
            "connection.password": "hunter2-secret",
            "retry.on.status.codes": "429,500-",
            "reporter.bootstrap.servers": "localhost:9092",
            "reporter.result.topic.name": "success-responses",
            "confluent.topic.bootstrap.servers": "localhost:9092",
        },
        sink={
            "http": {
                "url": "http://localhost:8080/api/{topic}/{key}",
                "method": "PUT",
                "headers": {"X-Source": "kafka", "Accept": "text/plain"},
                "value": "value",
                "auth": {"basic": {"username": "admin", "password": "hunter2-secret"}},
                "retry_statuses": [429, "5xx"],
            }
        },
        steps=[{"sql": "SELECT * FROM rows WHERE value IS NOT NULL"}],
    ),
    "http-batches": Example(
        {
            "connector.class": "io.confluent.connect.http.HttpSinkConnector",
            "topics.regex": "orders-.*",
            "http.api.url": "https://localhost:8080/api/messages",
            "request.body.format": "json",
            "batch.max.size": "10",
            "batch.json.as.array": "true",
            "behavior.on.null.values": "fail",
            "auth.type": "OAUTH2",
            "oauth2.token.url": "https://login/token",
            "oauth2.client.id": "penstock",
            "oauth2.client.secret": "hunter2-secret",
        },
        sink={
            "http": {
                "url": "https://localhost:8080/api/messages",
                "method": "POST",
                "value": "value",
                "batch": 10,
                "batch_format": "array",
                "auth": {
                    "oauth": {
                        "token_url": "https://login/token",
                        "client_id": "penstock",
                        "client_secret": "hunter2-secret",
                        "scope": "",
                    }
                },
            }
        },
        steps=[],
    ),
    "aiven-http": Example(
        {
            "connector.class": "io.aiven.kafka.connect.http.HttpSinkConnector",
            "topics": "orders",
            "http.url": "https://api.example/orders",
            "http.authorization.type": "static",
            "http.authorization.header": "Bearer hunter2-secret",
            "http.headers.content.type": "application/json",
            "http.headers.additional": "X-A:1,X-B:{2}",
            "batching.enabled": "true",
            "batch.max.size": "100",
        },
        sink={
            "http": {
                "url": "https://api.example/orders",
                "headers": {"X-A": "1", "X-B": "{{2}}", "Content-Type": "application/json"},
                "value": "value",
                "batch": 100,
                "batch_format": "lines",
                "auth": {"api_key": {"header": "Authorization", "secret": "Bearer hunter2-secret"}},
                "timeout": 30,
            }
        },
    ),
    "mirror": Example(
        {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": "west",
            "target.cluster.alias": "east",
            "source.cluster.bootstrap.servers": "west-1:9092,west-2:9092",
            "source.cluster.security.protocol": "SASL_SSL",
            "source.cluster.sasl.mechanism": "SCRAM-SHA-512",
            "source.cluster.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
            'required username="mirror" password="hunter2-secret";',
            "target.cluster.bootstrap.servers": "east-1:9092",
            "topics": "orders.*,customers",
            "tasks.max": "2",
            "refresh.topics.interval.seconds": "60",
            "sync.topic.acls.enabled": "false",
            "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        },
        source={
            "mirror": {
                "cluster": {
                    "bootstrap.servers": "west-1:9092,west-2:9092",
                    "security.protocol": "sasl_ssl",
                    "sasl.mechanism": "SCRAM-SHA-512",
                    "sasl.username": "mirror",
                    "sasl.password": "hunter2-secret",
                },
                "alias": "west",
                "pattern": "(?:orders.*)|(?:customers)",
                "exclude": [".*[\\-\\.]internal", ".*\\.replica", "__.*"],
                "configs": True,
                "follow_every": 60,
                "topic": "{cluster}.{topic}",
                "tasks_max": 2,
            }
        },
    ),
    "penstock-opensearch": Example(
        {
            "connector.class": "PenstockOpensearchSink",
            "topics": "orders",
            "url": "http://localhost:9200,http://localhost:9201",
            "index": "orders-{at:%Y}",
            "id": "id",
            "mapping": '{"properties": {"at": {"type": "date"}}}',
            "settings.number_of_shards": "2",
            "auth.basic.username": "app",
            "auth.basic.password": "hunter2-secret",
            "penstock.tombstones": "delete",
            "penstock.key.mode": "record_key",
            "penstock.key.fields": "id",
        },
        sink={
            "opensearch": {
                "url": ["http://localhost:9200", "http://localhost:9201"],
                "index": "orders-{at:%Y}",
                "id": ["id"],
                "mapping": {"properties": {"at": {"type": "date"}}},
                "settings": {"number_of_shards": "2"},
                "auth": {"basic": {"username": "app", "password": "hunter2-secret"}},
                "delete_when": "kafka_tombstone",
            }
        },
    ),
    "penstock-delta": Example(
        {
            "connector.class": "PenstockDeltaSinkConnector",
            "topics": "orders",
            "path": "/data/orders",
            "partition_by": "day, region",
            "compact.every": "1h",
            "properties.delta.appendOnly": "true",
            "penstock.metadata": "offset",
            "penstock.delivery": "exactly-once",
        },
        sink={
            "delta": {
                "path": "/data/orders",
                "partition_by": ["day", "region"],
                "compact": {"every": "1h"},
                "properties": {"delta.appendOnly": "true"},
            }
        },
        delivery="exactly-once",
    ),
    "penstock-kafka": Example(
        {
            "connector.class": "PenstockKafkaSink",
            "topics": "orders",
            "topic": "copies",
            "value_format.avro.registry.url": "http://registry:8081",
            "connection.bootstrap.servers": "other:9092",
        },
        sink={
            "kafka": {
                "topic": "copies",
                "value_format": {"avro": {"registry": {"url": "http://registry:8081"}}},
                "connection": {"bootstrap.servers": "other:9092"},
            }
        },
    ),
    "penstock-http-source": Example(
        {
            "connector.class": "PenstockHttpSource",
            "url": "http://localhost/api",
            "topic": "items",
            "headers.X-A": "1",
            "records": "/items",
            "paging.offset.size": "50",
            "auth.bearer.token": "hunter2-secret",
        },
        source={
            "http": {
                "url": "http://localhost/api",
                "topic": "items",
                "headers": {"X-A": "1"},
                "records": "/items",
                "paging": {"offset": {"size": 50}},
                "auth": {"bearer": {"token": "hunter2-secret"}},
                "tasks_max": 1,
            }
        },
    ),
    "penstock-host-metrics": Example(
        {
            "connector.class": "PenstockHostMetricsSource",
            "kinds": "cpu,memory",
            "topic": "metrics.{kind}",
        },
        source={
            "host_metrics": {"kinds": ["cpu", "memory"], "topic": "metrics.{kind}", "tasks_max": 1}
        },
    ),
    "penstock-rabbitmq": Example(
        {
            "connector.class": "PenstockRabbitmqSource",
            "url": "amqp://localhost",
            "queues": "a,b",
            "topic": "t",
        },
        source={
            "rabbitmq": {
                "url": "amqp://localhost",
                "queues": ["a", "b"],
                "topic": "t",
                "tasks_max": 1,
            }
        },
    ),
    "penstock-jms": Example(
        {
            "connector.class": "PenstockJmsSource",
            "url": "amqp://localhost:5672",
            "topics": '{"prices": "prices-to-kafka"}',
            "client_id": "c",
            "topic": "t",
        },
        source={
            "jms": {
                "url": "amqp://localhost:5672",
                "topics": {"prices": "prices-to-kafka"},
                "client_id": "c",
                "topic": "t",
                "tasks_max": 1,
            }
        },
    ),
    "penstock-listener": Example(
        {
            "connector.class": "PenstockHttpListenerSource",
            "port": "0",
            "topic": "in",
            "key.header": "X-Key",
        },
        source={
            "http_listener": {"port": 0, "topic": "in", "key": {"header": "X-Key"}, "tasks_max": 1}
        },
    ),
}
