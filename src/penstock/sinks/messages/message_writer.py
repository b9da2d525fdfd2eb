"""Writes rows as messages: Spark makes the columns of a message, each task sends its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.error_frame import ForeignError, in_worker
from penstock.pipeline import ORIGIN, Batch, RefusedRow, Writer
from penstock.pipeline.java_errors import raised_in_worker
from penstock.pipeline.names import map_in_arrow
from penstock.pipeline.writer import S_co
from penstock.sinks.messages.message_value import MessageValue
from penstock.sinks.messages.outlet import OUTCOME, Opener, Sending

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from penstock.sinks.messages.record_encodes import BatchEncode


class MessageWriter(Writer[S_co]):
    """The base of writers whose tasks send each row as a message; the sink sets `names_refused`."""

    # Where the message has a value in a format of the options.
    value: MessageValue | None = None

    @abstractmethod
    def message(self, rows: DataFrame) -> dict[str, Column]:
        """Return the columns of a message by the names that the outlet knows them by."""

    @abstractmethod
    def opener(self) -> Opener:
        """Return what opens the outlet in a task; it is sent there."""

    def prepare_messages(self, schema: StructType) -> None:
        """Look at the columns of messages for rows of this schema, and register what it needs."""
        self._encode(self._messages(self.opening.spark.createDataFrame([], schema)))

    def _messages(self, rows: DataFrame) -> DataFrame:
        own = [column.alias(name) for name, column in self.message(rows.drop(*ORIGIN)).items()]
        known = [name for name in ORIGIN if name in rows.columns]
        return rows.select(*own, *known)

    def _encode(self, messages: DataFrame) -> BatchEncode | None:
        return self.value.encode(messages.schema) if self.value else None

    def write(self, batch: Batch) -> Sequence[RefusedRow]:
        """Send the rows; return those that the system refused."""
        messages = self._messages(batch.rows)
        sending = Sending(self.opener(), self._encode(messages))
        try:
            refused = map_in_arrow(messages, in_worker(sending, "write"), OUTCOME).collect()
        except Exception as error:
            raised = raised_in_worker(error)
            if raised is None or isinstance(raised, ForeignError):
                raise
            raise raised from None
        return [RefusedRow(*row) for row in refused]
