"""The value of messages: which columns it is made of, and its format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.encode.format_options import FormatChoice
from penstock.sinks.messages.record_columns import value_column, value_of
from penstock.sinks.messages.record_encodes import BatchEncode, RecordEncodes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


class MessageValue:
    """A column, or all that have no other use as one row; JSON by Spark, other formats by tasks.

    `subject` is what a schema registry knows it by, where the topic would be.
    """

    def __init__(self, chosen: FormatChoice, named: str | None, subject: str) -> None:
        self._named = named
        self._format = None if chosen.name == "json" else chosen
        formats = {"value": self._format} if self._format else {}
        self._encodes = RecordEncodes(formats, subject, {"value": named})

    def column(self, rows: DataFrame, used: Iterable[str | None] = ()) -> Column:
        """Return the value; `used` are the columns with another use."""
        known = [*used]
        if self._format:
            named = value_column(rows.columns, self._named, known, self._format)
            self._encodes.name_value(named)
        return value_of(rows, self._named, known, self._format)

    def encode(self, messages: StructType) -> BatchEncode | None:
        """Return what makes bytes of it in a task; None where Spark has made them."""
        return self._encodes.batch_encode(messages) if self._format else None
