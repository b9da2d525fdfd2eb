"""The sink of a connector's bad records: they end it, are left out, or go to its dead letter queue.

Definitions do not name it: `connect/error_handling.py` makes it of a connector's configuration.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from penstock.config import Connection
from penstock.config.models import SafeModel
from penstock.pipeline import Delivery, Opening, Sink, Writer
from penstock.pipeline.record_store import RecordStore
from penstock.sinks.connect_errors.error_queue import ErrorQueue
from penstock.sinks.connect_errors.error_report import Reporter
from penstock.sinks.connect_errors.error_stages import PluginClasses
from penstock.sinks.connect_errors.errors_without_queue import WithoutQueue
from penstock.sinks.kafka.kafka_sink import KafkaSink


class LogOptions(SafeModel):
    """`errors.log.*`."""

    enable: bool = False
    messages: bool = False


class ConnectErrors(Sink):
    """Bad records of a connector, by its `errors.*`.

    With a queue they are as safe as the rows of the connector: as exactly as the sink `kafka` has them.
    """

    name = "connect_errors"
    delivers: ClassVar[frozenset[Delivery]] = frozenset(Delivery)

    connector: str = Field(description="The name of the connector.")
    classes: PluginClasses = Field(description="The classes that failures are reported with.")
    tolerance: Literal["none", "all"] = Field(default="none", description="errors.tolerance.")
    topic: str | None = Field(
        default=None, description="The dead letter queue, where there is one."
    )
    replication: int | None = Field(default=None, description="The copies of a queue that is made.")
    context: bool = Field(default=False, description="Whether its records have headers of Connect.")
    log: LogOptions = Field(default=LogOptions(), description="errors.log.*.")

    @property
    def stores_nothing(self) -> bool:
        """Return whether bad records are kept nowhere."""
        return self.topic is None

    def reporter(self) -> Reporter:
        """Return what writes bad records to the log."""
        return Reporter(self.connector, self.classes, self.log.enable, self.log.messages)

    def record_store(self, connection: Connection) -> RecordStore | None:
        """Return the queue, where there is one."""
        if self.topic is None:
            return None
        return ErrorQueue(KafkaSink(topic=self.topic), connection, self)

    def open(self, opening: Opening) -> Writer:
        """Return what leaves records out, or ends the connector."""
        return WithoutQueue(self, opening)
