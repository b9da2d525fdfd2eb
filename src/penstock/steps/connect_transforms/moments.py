"""Columns of dates, times of the day and moments as milliseconds since 1970, and back."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.formats.connect import Schema
from penstock.formats.connect.schema import DATE, TIMESTAMP
from penstock.steps.connect_transforms.date_text import MILLIS_OF_DAY, as_date


def millis_of(column: Column, schema: Schema) -> Column:
    """Return the milliseconds of a Date, Time or Timestamp."""
    if schema.name == DATE:
        return f.unix_date(column).cast("bigint") * MILLIS_OF_DAY
    if schema.name == TIMESTAMP:
        return f.unix_millis(column)
    return column.cast("bigint")


def date_of(millis: Column) -> Column:
    """Return the Date of a moment."""
    return as_date(millis)


def time_of(millis: Column) -> Column:
    """Return the Time of a moment: its milliseconds since midnight."""
    return f.pmod(millis, f.lit(MILLIS_OF_DAY)).cast("int")


def timestamp_of(millis: Column) -> Column:
    """Return the Timestamp of a moment."""
    return f.timestamp_millis(millis)
