"""Rows in an Apache Iceberg table."""

from penstock.sinks.iceberg.sink import IcebergSink

__all__ = ["IcebergSink"]
