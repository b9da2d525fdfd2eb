"""A decode: a row for each good record, and the bad records with what is wrong with them."""

from __future__ import annotations

from pydantic import Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.pipeline import FAILED, Decode
from penstock.pipeline.names import ColumnNames


class FieldsDecode(Decode):
    """Texts with semicolons, such as `7;ada`: a column of text for each field."""

    name = "fields"
    main_option = "columns"

    columns: ColumnNames = Field(min_length=1, description="The names of the fields.")

    def decode(self, records: DataFrame) -> DataFrame:
        """Return a row for each record; FAILED is null, or a fingerprint of the bytes of a bad one."""
        fields = [f.get(_fields(), f.lit(n)).alias(name) for n, name in enumerate(self.columns)]
        return records.select(*fields, self._failed())

    def failures(self, records: DataFrame) -> DataFrame:
        """Return the bad records, whole, with their errors."""
        bad = records.select("*", self._failed()).where(f.col(FAILED).isNotNull())
        error = f.lit(f"the value does not have {len(self.columns)} fields")
        return bad.withColumns({"error_type": f.lit("WrongNumberOfFields"), "error": error})

    def _failed(self) -> Column:
        fingerprint = f.crc32(f.coalesce(f.col("value"), f.lit(b"")))
        return f.when(f.size(_fields()) != len(self.columns), fingerprint).alias(FAILED)


def _fields() -> Column:
    return f.split(f.coalesce(f.col("value").cast("string"), f.lit("")), ";")
