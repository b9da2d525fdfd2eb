"""Rows kept in this process, for tests, notebooks and small tables."""

from penstock.sinks.memory.memory_sink import MemorySink
from penstock.sinks.memory.table_store import MemoryTable, memory_table

__all__ = ["MemorySink", "MemoryTable", "memory_table"]
