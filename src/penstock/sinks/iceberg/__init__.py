"""Rows in an Apache Iceberg table."""

from penstock.sinks.iceberg.iceberg_sink import IcebergSink

__all__ = ["IcebergSink"]
