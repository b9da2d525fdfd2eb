"""Rows as files in a folder: Parquet, JSON lines or CSV."""

from penstock.sinks.files.files_sink import FilesSink

__all__ = ["FilesSink"]
