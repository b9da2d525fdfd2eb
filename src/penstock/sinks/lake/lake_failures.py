"""Translates the errors of Delta and Iceberg that refuse a write into ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.errors import ConfigError, RefusedError, SetupError, TransientError
from penstock.pipeline.java_errors import (
    Cause,
    causes_of,
    is_disk_full,
    is_name_too_long,
    is_unmade_folder,
)

_ICEBERG = "org.apache.iceberg.exceptions."
# Another writer came first: what this write had looked at is no longer the newest version.
_CAME_FIRST = (
    "io.delta.exceptions.DeltaConcurrentModificationException",
    "org.apache.spark.sql.delta.DeltaConcurrentModificationException",
    *(
        f"{_ICEBERG}{name}Exception"
        for name in ("CommitFailed", "CommitStateUnknown", "Validation")
    ),
)
_CHANGED = ("DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "DELTA_CONCURRENT_")
_OF_THE_ROW = (
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
    "NOT_NULL_ASSERT_VIOLATION",
    "EXCEED_LIMIT_LENGTH",
)
_NO_PLACE = ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "DELTA_MISSING_DELTA_TABLE")
_FORBIDDEN = (
    "java.nio.file.AccessDeniedException",
    "org.apache.hadoop.security.AccessControlException",
    "org.apache.hadoop.fs.ParentNotDirectoryException",
)
_NO_LOG = "DELTA_CANNOT_CREATE_LOG_PATH"
_FORBIDDEN_REASONS = ("Permission denied", "Not a directory", "Read-only file system")


@contextmanager
def lake_errors(named: str) -> Iterator[None]:
    """Translate conflicts with other writers, bad rows and locations that are not a table."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        causes = causes_of(error)
        if row := _first(causes, _OF_THE_ROW):
            raise RefusedError(f"{named} refuses a row: {row.message}") from error
        if is_name_too_long(causes):
            raise RefusedError(
                f"{named} refuses a row: a value is too long to name a folder; choose other columns for "
                "'partition_by', or shorten it in a step"
            ) from error
        if _first(causes, _CHANGED) or any(cause.is_a(*_CAME_FIRST) for cause in causes):
            raise TransientError(
                f"{named} was changed by another writer at the same time; the batch is run again"
            ) from error
        if _first(causes, _NO_PLACE):
            raise ConfigError(
                f"{named} cannot be made: there are files that are no Delta table; "
                "give another folder, or empty this one"
            ) from error
        if is_disk_full(causes):
            raise TransientError(
                f"there is no space left for {named}: free some, and the same rows are written then"
            ) from error
        if forbidden := next(filter(_is_forbidden, causes), None):
            raise SetupError(
                f"{named} cannot be written: {forbidden.name}: {forbidden.message}; choose a place that "
                "this user may write"
            ) from error
        raise


def _first(causes: Sequence[Cause], conditions: tuple[str, ...]) -> Cause | None:
    return next((cause for cause in causes if cause.condition.startswith(conditions)), None)


def _is_forbidden(cause: Cause) -> bool:
    return (
        cause.is_a(*_FORBIDDEN)
        or cause.condition == _NO_LOG
        or cause.reason in _FORBIDDEN_REASONS
        or is_unmade_folder(cause)
    )
