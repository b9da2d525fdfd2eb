"""Rows kept in this process, for tests, notebooks and small tables."""

from penstock.sinks.memory.sink import MemorySink
from penstock.sinks.memory.table import MemoryTable, memory_table

__all__ = ["MemorySink", "MemoryTable", "memory_table"]
