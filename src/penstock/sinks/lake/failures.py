"""What Delta and Iceberg say when they refuse a write, told in the engine's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.errors import ConfigError, RefusedError, SetupError, TransientError
from penstock.pipeline.told import told_by_spark
from penstock.sinks.folders import is_name_too_long

# Another writer came first: what this write had looked at is no longer the newest version.
_CAME_FIRST = re.compile(
    r"\bDELTA_(?:METADATA_CHANGED|PROTOCOL_CHANGED|CONCURRENT_\w+)"
    r"|\bConcurrent\w+Exception\b|\b(?:Metadata|Protocol)ChangedException\b"
    r"|\biceberg\.exceptions\.(?:CommitFailed|CommitStateUnknown|Validation|CherrypickAncestorCommit)\w*"
)
_OF_THE_ROW = re.compile(
    r"\[(?:DELTA_NOT_NULL_CONSTRAINT_VIOLATED|DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    r"|DELTA_EXCEED_CHAR_VARCHAR_LIMIT|NOT_NULL_ASSERT_VIOLATION|EXCEED_LIMIT_LENGTH)[^\]]*\] .*"
)
_UNWRITABLE = re.compile(
    r"Mkdirs failed to create|Permission denied|AccessControlException|ParentNotDirectoryException"
    r"|Not a directory|Parent path is not a directory"
)
_NO_PLACE = re.compile(r"DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION|DELTA_MISSING_DELTA_TABLE")


@contextmanager
def lake_errors(named: str) -> Iterator[None]:
    """Tell other writers, bad rows and a place that is no table from every other failure."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        whole = told_by_spark(error)
        if row := _OF_THE_ROW.search(whole):
            raise RefusedError(f"{named} refuses a row: {row[0]}") from error
        if is_name_too_long(whole):
            raise RefusedError(
                f"{named} refuses a row: a value is too long to name a folder; choose other columns for "
                "'partition_by', or shorten it in a step"
            ) from error
        if _CAME_FIRST.search(whole):
            raise TransientError(
                f"{named} was changed by another writer at the same time; the batch is run again"
            ) from error
        if _NO_PLACE.search(whole):
            raise ConfigError(
                f"{named} cannot be made: there are files that are no Delta table; "
                "give another folder, or empty this one"
            ) from error
        if unwritable := _UNWRITABLE.search(whole):
            raise SetupError(
                f"{named} cannot be written: {unwritable[0]}; choose a place that this user may write"
            ) from error
        raise
