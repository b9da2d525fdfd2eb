"""Kafka Connect's configurations and names: connectors that run as pipelines.

What the author of a connector needs is exported here; docs/connect-development.md shows how it is used.
"""

from penstock.connect.config_definition import Key, Type
from penstock.connect.connector_class import ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Imported, KeyColumns
from penstock.formats.connect import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    SchemaBuilder,
    date,
    decimal,
    time,
    timestamp,
)
from penstock.formats.connect.converter_options import ConverterOptions

__all__ = [
    "BOOLEAN",
    "BYTES",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "ConnectorClass",
    "ConnectorConfig",
    "ConverterOptions",
    "Imported",
    "Key",
    "KeyColumns",
    "Schema",
    "SchemaBuilder",
    "Type",
    "date",
    "decimal",
    "time",
    "timestamp",
]
