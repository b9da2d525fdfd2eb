"""Which columns tell the rows of a table apart: `pk.mode` and its like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from penstock.connect.connector_rows import KeyColumns

Mode = Literal["append", "upsert", "update"]
MODES: dict[str, Mode] = {
    "insert": "append",
    "multi": "append",
    "upsert": "upsert",
    "update": "update",
}
"""Modes of inserting, with those of the sink `database`."""
KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True)
class TableKeys:
    """Keys of a configuration that belong together, by their names in it and by their values."""

    mode_key: str
    fields_key: str
    insert_key: str
    mode: str
    names: tuple[str, ...]
    insert: str
    deletes: bool
    creates: bool

    @property
    def columns(self) -> KeyColumns:
        """Return the columns of the key."""
        match self.mode:
            case "kafka":
                return KeyColumns.kafka(*(self.names or KAFKA_COLUMNS))
            case "record_key":
                return KeyColumns.record_key(*self.names)
            case "record_value":
                return KeyColumns.record_value(*self.names)
        return KeyColumns.none()

    @property
    def key(self) -> list[str]:
        """Return the option `key` of the sink."""
        return [*self.columns.names]

    def obstacles(self) -> Iterator[tuple[str, str]]:
        """Yield what does not fit together."""
        mode = self.mode
        if mode == "none" and self.insert in ("upsert", "update"):
            yield (
                self.mode_key,
                f"Invalid value none for configuration {self.mode_key}: {self.insert_key} is "
                f"{self.insert}, which needs a key: give record_key, record_value or kafka",
            )
        if mode == "kafka" and len(self.names) not in (0, 3):
            yield (
                self.fields_key,
                f"Invalid value for configuration {self.fields_key}: with kafka there are three columns, "
                f"for topic, partition and offset; given {len(self.names)}",
            )
        needs_names = self.insert in ("upsert", "update") or self.creates
        if mode in ("record_key", "record_value") and not self.names and needs_names:
            yield (
                self.fields_key,
                f"Invalid value for configuration {self.fields_key}: name the columns of the key: the "
                "table's key is known before the first record is read, so 'all fields' is not possible",
            )
        yield from self._delete_obstacles()

    def _delete_obstacles(self) -> Iterator[tuple[str, str]]:
        if self.deletes and self.mode != "record_key":
            yield (
                "delete.enabled",
                "Invalid value true for configuration delete.enabled: a tombstone has only a key; give "
                f"{self.mode_key}=record_key",
            )
        elif self.deletes and self.insert not in ("upsert", "update"):
            yield (
                "delete.enabled",
                f"Invalid value true for configuration delete.enabled: {self.insert_key} is "
                f"{self.insert}; rows are deleted by their key with upsert or update: give "
                f"{self.insert_key}=upsert",
            )
