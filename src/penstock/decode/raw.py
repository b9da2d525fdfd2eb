"""Undecoded records: every column of the record is a column of the row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.decode.workers import with_origin
from penstock.pipeline import FAILED, Decode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RawDecode(Decode):
    """Key and value as bytes, with topic, partition, offset, timestamp and, if they are read, headers."""

    name = "raw"
    in_real_time = True

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the records themselves."""
        return records.drop("timestampType").withColumn(FAILED, f.lit(None).cast("long"))

    def failures(self, records: DataFrame) -> DataFrame:
        """Return no record: bytes are always bytes."""
        return records.where(f.lit(False)).withColumns(
            {
                "error_type": f.lit(None).cast("string"),
                "error": f.lit(None).cast("string"),
                FAILED: f.lit(None).cast("long"),
            }
        )

    def traced(self, records: DataFrame) -> DataFrame:
        """Return the records, and where they are from."""
        return self.decode(with_origin(records))
