"""Records as they are: every column of the record is a column of the row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.decode.workers import never_fails, with_origin
from penstock.pipeline import FAILED, Decode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RawDecode(Decode):
    """Key and value as bytes, beside topic, partition, offset, timestamp and, where read, headers."""

    name = "raw"
    in_real_time = True

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the records themselves."""
        return records.drop("timestampType").withColumn(FAILED, f.lit(None).cast("long"))

    def failures(self, records: DataFrame) -> DataFrame:
        """Return nothing: bytes are always bytes."""
        return never_fails(records)

    def traced(self, records: DataFrame) -> DataFrame:
        """Return the records, and where they are from."""
        return self.decode(with_origin(records))
