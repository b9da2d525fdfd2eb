"""Rows in a Delta Lake table."""

from penstock.sinks.delta.delta_sink import DeltaSink

__all__ = ["DeltaSink"]
