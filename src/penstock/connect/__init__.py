"""Kafka Connect's configurations and names: connectors that run as pipelines.

What the author of a connector needs is exported here; docs/connect-development.md shows how it is used.
"""

from penstock.connect.config_definition import Key, Type
from penstock.connect.connector_class import ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Imported, KeyColumns
from penstock.formats.connect import Schema, SchemaBuilder

__all__ = [
    "ConnectorClass",
    "ConnectorConfig",
    "Imported",
    "Key",
    "KeyColumns",
    "Schema",
    "SchemaBuilder",
    "Type",
]
