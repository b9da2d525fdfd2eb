"""Bad records in the log, as `errors.log.enable` has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from penstock.config.logs import event_logger
from penstock.sinks.connect_errors.error_stages import PluginClasses, class_of, stage_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = event_logger(__name__)
# The most records of one batch that are named one by one.
MOST = 1000
_LONGEST = 2000
PLACE = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True)
class Reporter:
    """Writes the failures of a connector to the log."""

    connector: str
    classes: PluginClasses
    enabled: bool = False
    with_place: bool = False

    def report(self, failures: DataFrame) -> None:
        """Log failures, which have the columns of PLACE, `stage`, `error_type` and `error`."""
        if not self.enabled:
            return
        stage, error = f.col("stage"), f.col("error")
        named = failures.select(
            *PLACE,
            stage_of(stage, error, self.classes).alias("stage"),
            class_of(stage, error, self.classes).alias("class"),
            f.concat_ws(": ", "error_type", "error").alias("reason"),
        )
        rows = named.limit(MOST + 1).collect()
        for row in rows[:MOST]:
            self._one(row.asDict())
        if len(rows) > MOST:
            log.error("connect_errors_not_listed", connector=self.connector, listed=MOST)

    def _one(self, row: dict[str, Any]) -> None:
        place = {name: str(row[name]) for name in PLACE} if self.with_place else {}
        log.error(
            "connect_error",
            connector=self.connector,
            task=0,
            stage=row["stage"],
            executing=row["class"],
            reason=row["reason"][:_LONGEST],
            **place,
        )
