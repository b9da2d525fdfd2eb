"""A trigger as the engine reads it: the base of all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from penstock.config import Connection
from penstock.flows.definition.flow import Flow


class TriggerSource(ABC):
    """A trigger as the engine reads it."""

    # How many tasks run the steps: one keeps the order of all messages.
    tasks: int = 1
    # The columns of a record that the attributes are made of, next to topic, partition and offset.
    columns: tuple[str, ...] = ()

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    @abstractmethod
    def source(self) -> Any:
        """Return the source of the pipeline: topics, or an import into `<flow>.in`."""

    def attributes(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of a record's message; `record` has the `columns`."""
        return dict(record)

    def connection(self) -> Connection | None:
        """Return the cluster that the trigger names, None where it names none."""
        return None

    def placed(self, connection: Connection) -> Connection:
        """Return the connection of the pipeline, with settings that the trigger gives."""
        return connection

    def options(self) -> dict[str, Any]:
        """Return more options of the pipeline: its group, its delivery."""
        return {}
