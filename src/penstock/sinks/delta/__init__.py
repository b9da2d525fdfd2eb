"""Rows in a Delta Lake table."""

from penstock.sinks.delta.sink import DeltaSink

__all__ = ["DeltaSink"]
