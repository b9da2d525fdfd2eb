"""Transforms of the topic, the filter, and the predicates that select records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.steps.connect_transforms.chain import PredicateSpec
from penstock.steps.connect_transforms.date_text import date_text
from penstock.steps.connect_transforms.part_transform import Transform
from penstock.steps.connect_transforms.record_columns import RecordColumns


class RegexRouter(Transform):
    """Renames topics whose whole name matches; `$1` in the new name is a group."""

    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return the columns with the new topic."""
        regex = self.options["regex"]
        # A name that matches as a whole has its first match at its beginning.
        renamed = f.regexp_replace(
            record.topic, f.lit(rf"\A(?:{regex})"), f.lit(self.options["replacement"])
        )
        return replace(
            record, topic=f.when(_matches(record.topic, regex), renamed).otherwise(record.topic)
        )


class TimestampRouter(Transform):
    """Puts the timestamp of the record into the name of its topic."""

    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return the columns with the new topic; a record without a timestamp is refused."""
        refuse = f.raise_error(f.lit("Timestamp missing on record")).cast("string")
        text = date_text(f.unix_millis(record.timestamp), self.options["timestamp.format"])
        stamp = f.when(record.timestamp.isNotNull(), text).otherwise(refuse)
        topic = f.replace(f.lit(self.options["topic.format"]), f.lit("${topic}"), record.topic)
        return replace(record, topic=f.replace(topic, f.lit("${timestamp}"), stamp))


class Filter(Transform):
    """Drops all records that reach it: with a predicate, those that it selects."""

    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return columns of which no row goes on."""
        # Of a plan that is empty for sure Spark leaves out what counts the rows of a batch.
        return replace(record, keep=f.spark_partition_id() < 0)


def holds(predicate: PredicateSpec, record: RecordColumns) -> Column:
    """Return for which records a predicate holds; it is never null."""
    return f.coalesce(_PREDICATES[predicate.kind](predicate, record), f.lit(False))


def _matches(topic: Column, regex: str) -> Column:
    return f.rlike(topic, f.lit(rf"\A(?:{regex})\z"))


def _has_header(predicate: PredicateSpec, record: RecordColumns) -> Column:
    name = predicate.options["name"]
    return f.exists(record.headers, lambda header: header["key"] == f.lit(name))


_PREDICATES: dict[str, Callable[[PredicateSpec, RecordColumns], Column]] = {
    "TopicNameMatches": lambda spec, record: _matches(record.topic, spec.options["pattern"]),
    "HasHeaderKey": _has_header,
    "RecordIsTombstone": lambda _, record: record.value.is_null,
}
