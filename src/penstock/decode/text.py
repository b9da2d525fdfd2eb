"""Values as text: one column, strict UTF-8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field
from pyspark.sql import functions as f

from penstock.decode.workers import with_origin
from penstock.pipeline import FAILED, ORIGIN, Decode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class TextDecode(Decode):
    """The value as one column of UTF-8 text; bytes that are not UTF-8 are that record's error."""

    name = "text"
    main_option = "column"

    column: str = Field(default="value", min_length=1, description="The column's name.")

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the text, and FAILED where it is none."""
        return records.select(*self._columns())

    def traced(self, records: DataFrame) -> DataFrame:
        """Return the text, and where it is from."""
        return with_origin(records).select(*self._columns(), *ORIGIN)

    def _columns(self) -> list[Column]:
        good = f.is_valid_utf8(f.col("value").cast("string"))
        text = f.when(good, f.col("value").cast("string"))
        return [text.alias(self.column), _mark().alias(FAILED)]

    def failures(self, records: DataFrame) -> DataFrame:
        """Return the records whose value is not UTF-8."""
        marked = records.withColumn(FAILED, _mark()).where(f.col(FAILED).isNotNull())
        return marked.withColumns(
            {"error_type": f.lit("UnicodeDecodeError"), "error": f.lit("the value is not UTF-8")}
        )


def _mark() -> Column:
    bad = ~f.is_valid_utf8(f.col("value").cast("string"))
    return f.when(bad, f.crc32(f.col("value"))).cast("long")
