"""Rows of two topics that belong together: the same key, and times close to each other."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.pipeline.component import Decode, Source, Step
from penstock.pipeline.names import column_names, quoted
from penstock.pipeline.registry import AnyDecode, AnyPlainStep, AnySource
from penstock.pipeline.stateful import Joining, interval, kept_columns
from penstock.pipeline.values import Duration

_OTHER = "_penstock_other_"


def _pairs(given: Any) -> Any:
    names = column_names(given) if isinstance(given, str) else given
    return {name: name for name in names} if isinstance(names, list) else names


Pairs = Annotated[
    dict[str, str],
    BeforeValidator(_pairs),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}},
                {"type": "object", "additionalProperties": {"type": "string"}},
            ]
        }
    ),
]


class JoinStep(Joining):
    """The rows so far, with the columns of the rows of another source that belong to them.

    Two rows belong together if the columns of `by` are equal and the other's time is not more than
    `before` earlier and `after` later. `how: inner` gives the pairs; `left` also gives rows that found no
    other, with nulls, once none can come any more. A row of either side that comes later than `late`
    allows goes to the dead letters.

    The other source's offsets are committed with those of the pipeline's own.
    """

    name = "join"

    source: AnySource = Field(description="Where the other records come from.")
    decode: AnyDecode = Field(
        default="raw", validate_default=True, description="How their bytes become rows."
    )
    steps: list[AnyPlainStep] = Field(
        default_factory=list,
        description="What happens to the other rows first; each step takes rows one by one.",
    )
    by: Pairs = Field(
        min_length=1, description="The columns that must be equal: names, or `{ours: theirs}`."
    )
    other_time: str = Field(
        default="", description="The column with the other rows' time; default: as `time`."
    )
    before: Duration = Field(
        default=0.0, ge=0, description="How much earlier than ours the other row may be."
    )
    after: Duration = Field(
        default=0.0, ge=0, description="How much later than ours the other row may be."
    )
    how: Literal["inner", "left"] = Field(
        default="inner", description="`inner`: pairs; `left`: rows without another one, too."
    )
    late: Duration = Field(
        default=0.0,
        ge=0,
        description="How much later than a younger row of its source a row may come.",
    )

    @property
    def delay(self) -> float:
        """Return the option `late`."""
        return self.late

    @property
    def other(self) -> tuple[Source, Decode, list[Step], str]:
        """Return the other rows."""
        return self.source, self.decode, list(self.steps), self.other_time or self.time

    def until(self, time: Column) -> Column:
        """Return the row's own time."""
        return time

    def join(self, rows: DataFrame, others: DataFrame) -> DataFrame:
        """Return the pairs, and for `left` the rows that have none."""
        self._refuse_the_same(rows.columns, others.columns)
        theirs = others.select(*(f.col(quoted(n)).alias(f"{_OTHER}{n}") for n in others.columns))
        joined = rows.join(theirs, self._belong(), self.how)
        kept = [name for name in others.columns if name not in self._matched]
        return joined.select(
            *(f.col(quoted(name)) for name in rows.columns),
            *(f.col(quoted(f"{_OTHER}{name}")).alias(name) for name in kept),
        )

    def shape(self, rows: StructType) -> dict[str, str]:
        """Describe the state: whole rows."""
        return {
            "time": self.time,
            "by": ", ".join(f"{ours}={theirs}" for ours, theirs in self.by.items()),
            "how": self.how,
            "columns": kept_columns(rows, rows.names),
        }

    @property
    def _matched(self) -> set[str]:
        """Return the other's columns that would only repeat ours."""
        return {theirs for ours, theirs in self.by.items() if ours == theirs}

    def _belong(self) -> Column:
        when = f.col(quoted(self.time))
        other = f.col(quoted(f"{_OTHER}{self.other_time or self.time}"))
        condition = other.between(
            when - f.expr(f"INTERVAL {interval(self.before)}"),
            when + f.expr(f"INTERVAL {interval(self.after)}"),
        )
        for ours, theirs in self.by.items():
            condition &= f.col(quoted(ours)) == f.col(quoted(f"{_OTHER}{theirs}"))
        return condition

    def _refuse_the_same(self, ours: list[str], theirs: list[str]) -> None:
        if twice := (set(ours) & set(theirs)) - self._matched:
            raise ConfigError(
                f"both sides of the join have a column {min(twice)!r}: let one of the join's own "
                "'steps' name it otherwise, or leave it out"
            )
