"""The classes of connectors, each in a module of its own."""

from penstock.connect.connector_class import Catalog
from penstock.connect.connectors.aiven_http_sink import AivenHttpSink
from penstock.connect.connectors.component_class import component_classes
from penstock.connect.connectors.debezium_jdbc_sink import DebeziumJdbcSink
from penstock.connect.connectors.file_stream import FileStreamSink, FileStreamSource
from penstock.connect.connectors.http_sink import HttpSink
from penstock.connect.connectors.iceberg_sink import IcebergSink
from penstock.connect.connectors.jdbc_sink import JdbcSink
from penstock.connect.connectors.jdbc_source import JdbcSource
from penstock.connect.connectors.mirror_source import MirrorSource
from penstock.connect.connectors.search_sink import ElasticsearchSink, OpensearchSink
from penstock.connect.installed_classes import installed_classes

CATALOG = Catalog(
    (
        FileStreamSink,
        FileStreamSource,
        JdbcSink,
        DebeziumJdbcSink,
        JdbcSource,
        IcebergSink,
        ElasticsearchSink,
        OpensearchSink,
        HttpSink,
        AivenHttpSink,
        MirrorSource,
        *component_classes(),
        *installed_classes(),
    )
)
"""The connectors of this package, and those of others that are installed."""
