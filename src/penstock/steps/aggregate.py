"""Rows of a stretch of time, put together: tumbling, sliding and session windows."""

from __future__ import annotations

from typing import Literal

import sqlglot
from pydantic import Field, field_validator, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType
from sqlglot import expressions as sql
from sqlglot.errors import SqlglotError

from penstock.pipeline.names import ColumnNames, quoted
from penstock.pipeline.safe_sql import refuse_unsafe, unsafe_part
from penstock.pipeline.stateful import Stateful, interval, kept_columns
from penstock.pipeline.values import Duration

_WINDOW, START, END = "_penstock_window", "window_start", "window_end"


class AggregateStep(Stateful):
    """Sums, counts and the like over windows of time, for each value of `by`.

    A window is one of three. Tumbling (`window: 1m`): one after the other. Sliding (`window: 10m` with
    `slide: 1m`): a row is in each window that covers its time. Session (`session: 5m`): rows that follow
    each other with less than that between them.

    The rows have the columns `window_start`, `window_end`, those of `by`, and those of `values`. A window
    is given out once, when it is over and no row can come for it any more (`emit: final`), or after each
    batch that changed it (`emit: changes`: for a sink that replaces rows by key). A row all of whose
    windows are over is late, and goes to the dead letters.
    """

    name = "aggregate"
    ends_rows = True

    window: Duration | None = Field(default=None, gt=0, description="How long a window is.")
    slide: Duration | None = Field(
        default=None, gt=0, description="After how long the next window begins; default: `window`."
    )
    session: Duration | None = Field(
        default=None, gt=0, description="Instead of `window`: the pause that ends a session."
    )
    by: ColumnNames = Field(
        default_factory=list, description="The columns for whose values windows are kept apart."
    )
    values: dict[str, str] = Field(
        min_length=1, description="The new columns: a name, and an aggregate as `sum(size)`."
    )
    late: Duration = Field(
        default=0.0,
        ge=0,
        description="How much later than a younger row a row may come and still be counted.",
    )
    emit: Literal["final", "changes"] = Field(
        default="final",
        description="`final`: a window once, when it is over; `changes`: whenever it has changed.",
    )

    @field_validator("values")
    @classmethod
    def _are_aggregates(cls, values: dict[str, str]) -> dict[str, str]:
        for name, text in values.items():
            try:
                parsed = sqlglot.parse_one(f"SELECT {text}", read="spark")
            except SqlglotError:
                raise ValueError(f"{name}: {text!r} is not SQL") from None
            except RecursionError:
                raise ValueError(f"{name}: the expression is nested too deeply") from None
            if len(parsed.expressions) != 1 or not parsed.find(sql.AggFunc, sql.Anonymous):
                raise ValueError(f"{name}: {text!r} is not an aggregate such as 'sum(size)'")
            if part := "a table" if parsed.find(sql.Table) else unsafe_part(parsed):
                raise ValueError(f"{name}: {text!r} has {part}; allowed: an aggregate of columns")
        return values

    @model_validator(mode="after")
    def _one_kind_of_window(self) -> AggregateStep:
        if (self.window is None) == (self.session is None):
            raise ValueError("give either 'window' or 'session'")
        if self.slide is not None and (self.window is None or self.slide > self.window):
            raise ValueError("'slide' is for a 'window', and not longer than it")
        if self.session is not None and self.emit == "changes":
            raise ValueError("sessions are given out when they are final: leave 'emit' out")
        if twice := {START, END, *self.by} & set(self.values):
            raise ValueError(f"the column {min(twice)!r} would be there twice: name it otherwise")
        return self

    @property
    def delay(self) -> float:
        """Return the option `late`."""
        return self.late

    @property
    def changes(self) -> bool:
        """Return whether windows are emitted before they are complete."""
        return self.emit == "changes"

    def until(self, time: Column) -> Column:
        """Return the end of the last window that the row belongs to."""
        if self.session is not None:
            return time + _micros(self.session)
        window = self.window or 0.0
        return time - f.pmod(time, f.lit(_micros(self.slide or window))) + _micros(window)

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return one row for each window and each value of `by`."""
        for text in self.values.values():
            refuse_unsafe(rows.sparkSession, f"SELECT {text}")
        by = [quoted(name) for name in self.by]
        aggregated = rows.groupBy(self._windows().alias(_WINDOW), *by).agg(
            *(f.expr(text).alias(name) for name, text in self.values.items())
        )
        start, end = f.col(f"{_WINDOW}.start").alias(START), f.col(f"{_WINDOW}.end").alias(END)
        return aggregated.select(start, end, *by, *map(quoted, self.values))

    def shape(self, rows: StructType) -> dict[str, str]:
        """Describe the state: a value for each window and group."""
        return {
            "time": self.time,
            "window": f"window={self.window} slide={self.slide} session={self.session}",
            "by": kept_columns(rows, self.by),
            "values": ", ".join(f"{name}: {text}" for name, text in self.values.items()),
            "emit": self.emit,
        }

    def _windows(self) -> Column:
        time = quoted(self.time)
        if self.session is not None:
            return f.session_window(time, interval(self.session))
        length = interval(self.window or 0.0)
        return f.window(time, length, interval(self.slide) if self.slide else length)


def _micros(seconds: float) -> int:
    return round(seconds * 1000) * 1000
