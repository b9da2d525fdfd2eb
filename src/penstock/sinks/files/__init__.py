"""Rows as files in a folder: Parquet, JSON lines or CSV."""

from penstock.sinks.files.sink import FilesSink

__all__ = ["FilesSink"]
