"""What a step is that remembers rows from one batch to the next.

Such a step goes by the time that a column gives, not by the clock. How far time has come is the greatest
time seen so far, less the delay that rows are allowed: the watermark. What lies before it is forgotten,
and a row that comes later than that is late.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from penstock.pipeline.component import Decode, Source, Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


class Stateful(Step):
    """A step that keeps state."""

    time: str = Field(min_length=1, description="The column with each row's own time, a timestamp.")
    # Whether its rows are made of several others, so that they have no time of their own any more.
    ends_rows: ClassVar[bool] = False

    @property
    def changes(self) -> bool:
        """Return whether rows may be emitted before they are final, and again when they change."""
        return False

    @property
    @abstractmethod
    def delay(self) -> float:
        """Return how many seconds a row may arrive after a more recent one."""

    @abstractmethod
    def until(self, time: Column) -> Column:
        """Return until when a row of this time is accepted: after that it is late.

        Both are microseconds since 1970.
        """

    @abstractmethod
    def shape(self, rows: StructType) -> dict[str, str]:
        """Describe the state of such rows: if the description changes, stored state is not usable."""


class Joining(Stateful):
    """A step that brings in the rows of another source."""

    @property
    @abstractmethod
    def other(self) -> tuple[Source, Decode, list[Step], str]:
        """Return the other rows: source, decode, steps and the column with their time."""

    @abstractmethod
    def join(self, rows: DataFrame, others: DataFrame) -> DataFrame:
        """Return the rows of both that belong together."""

    def apply(self, _rows: DataFrame) -> DataFrame:
        """Raise: a join needs two streams."""
        raise TypeError(f"the step {self.name!r} needs the rows of two sources")


def kept_columns(rows: StructType, names: list[str]) -> str:
    """Describe columns by name and type, in one line."""
    return ", ".join(f"{name} {rows[name].dataType.simpleString()}" for name in names)


def interval(seconds: float) -> str:
    """Write a duration as Spark reads it.

    >>> interval(1.5)
    '1500 milliseconds'
    """
    return f"{round(seconds * 1000)} milliseconds"


def misplaced(steps: Sequence[Step]) -> str | None:
    """Return which step cannot be at its position, in a list with stateful steps."""
    keepers = [n for n, step in enumerate(steps) if isinstance(step, Stateful)]
    if not keepers:
        return None
    for n, step in enumerate(steps[: keepers[-1]]):
        if not isinstance(step, Stateful) and (mixing := step.mixes()):
            return (
                f"steps[{n}] ({step.name}) comes before a step that keeps state, so it must process "
                f"rows independently: {mixing}; put it after steps[{keepers[-1]}]"
            )
    return _among_keepers([(n, step) for n in keepers if isinstance(step := steps[n], Stateful)])


def _among_keepers(keepers: Sequence[tuple[int, Stateful]]) -> str | None:
    (_, first), (_, last) = keepers[0], keepers[-1]
    for n, step in keepers:
        if step.ends_rows and step is not last:
            return (
                f"steps[{n}] ({step.name}) makes rows of many others: no step that keeps state can "
                "come after it"
            )
        if step.time != first.time:
            return (
                f"steps[{n}] ({step.name}) goes by {step.time!r}, and another step before by "
                f"{first.time!r}: all go by the same time"
            )
    return _among_others(keepers)


def _among_others(keepers: Sequence[tuple[int, Stateful]]) -> str | None:
    for n, join in keepers:
        for index, step in enumerate(join.other[2] if isinstance(join, Joining) else ()):
            if why := "it keeps state" if isinstance(step, Stateful) else step.mixes():
                place = f"steps[{n}] (join).steps[{index}] ({step.name})"
                return f"{place} must process rows independently: {why}"
    return None
