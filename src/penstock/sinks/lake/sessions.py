"""What a Spark session must have for these tables, and settings that hold for one statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def need_extension(spark: SparkSession, sink: str, extension: str) -> None:
    """Refuse a session that somebody else started without it: one of ours has it."""
    if extension not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise ConfigError(
            f"the sink {sink!r} needs a Spark session with the setting 'spark.sql.extensions' = "
            f"{extension!r}; the one that runs in this process was started without it: start it with "
            "that setting and its jars, or let Penstock start the session"
        )


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Set something for what is inside: each pipeline has a session state of its own."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)
