"""What of a pipeline runs on Spark's stream, and what on each of its batches.

Without a step that keeps state everything is done batch by batch. With one, all up to the last of such
steps is part of the stream, and the batches have what comes out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.errors import ConfigError
from penstock.pipeline import BoundStep, Decode, Pipeline, Source, Step
from penstock.pipeline.names import quoted
from penstock.pipeline.stateful import Joining, Stateful

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Bind = Callable[[Step], BoundStep]


@dataclass(frozen=True)
class Branch:
    """One way into the pipeline: records of some topics and what is done to each row of them."""

    number: int
    source: Source
    decode: Decode
    steps: tuple[BoundStep, ...] = ()
    # The first step that keeps state of these rows, and the column that it goes by.
    keeper: Stateful | None = None
    time: str = ""

    @property
    def place(self) -> str:
        """Return its path in the definition."""
        return "" if self.number == 0 else f"{self.keeper.name if self.keeper else ''}."

    def column(self) -> Column:
        """Return the column with the rows' time."""
        return f.col(quoted(self.time))

    def until(self) -> Column:
        """Return until which time a row is accepted, in microseconds since 1970."""
        own = f.unix_micros(self.column())
        return self.keeper.until(own) if self.keeper and self.number == 0 else own


@dataclass(frozen=True)
class Plan:
    """The branches, what happens on the stream where they meet, and what happens to each batch."""

    branches: tuple[Branch, ...]
    stream: tuple[BoundStep, ...] = ()
    batch: tuple[BoundStep, ...] = ()
    delay: float = 0.0
    # Whether rows have the columns of their ORIGIN on their way to the sink.
    traced: bool = False

    def decoded(self, records: DataFrame) -> DataFrame:
        """Return the rows of records, where all is done batch by batch."""
        decode = self.branches[0].decode
        return decode.traced(records) if self.traced else decode.decode(records)

    def after_steps(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a batch as they reach the sink."""
        for step in self.batch:
            rows = step.traced(rows) if self.traced else step.apply(rows)
        return rows

    @property
    def sources(self) -> list[Source]:
        """Return every source, the pipeline's own first."""
        return [branch.source for branch in self.branches]

    @property
    def before(self) -> int:
        """Return how many of the pipeline's steps come before those of a batch."""
        return len(self.branches[0].steps) + len(self.stream)

    def is_stale(self) -> bool:
        """Return whether a table that the stream is joined with is to be read again."""
        steps = (*self.stream, *(step for branch in self.branches for step in branch.steps))
        return any(step.is_stale() for step in steps)

    @property
    def output_mode(self) -> str:
        """Return Spark's output mode: 'update' if rows are emitted before they are final."""
        steps = (bound.step for bound in self.stream)
        changes = any(isinstance(step, Stateful) and step.changes for step in steps)
        return "update" if changes else "append"


def plan_of(pipeline: Pipeline, bind: Bind = lambda step: step.bind()) -> Plan:
    """Divide a pipeline's steps, and bind them."""
    own = pipeline.source
    steps = tuple(map(bind, pipeline.steps))
    keepers = {n: step for n, step in enumerate(pipeline.steps) if isinstance(step, Stateful)}
    if not keepers:
        return Plan((Branch(0, own, pipeline.decode),), batch=steps, traced=_is_traced(pipeline))
    first, behind = min(keepers), max(keepers) + 1
    keeper = keepers[first]
    main = Branch(0, own, pipeline.decode, steps[:first], keeper, keeper.time)
    stream = steps[first:behind]
    branches = (main, *_joined(stream, bind))
    _refuse_shared_topics(branches)
    delay = max(step.delay for step in keepers.values())
    return Plan(branches, stream, steps[behind:], delay)


def _is_traced(pipeline: Pipeline) -> bool:
    """Return whether a row that the sink refuses by itself can be followed back to its record."""
    steps = all(step.traces_in_bulk for step in pipeline.steps)
    return pipeline.sink.names_refused and pipeline.decode.can_trace and steps


def with_bound_decode(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with its decode as one attempt has it: both passes over a batch use it."""
    placed = pipeline.decode.placed(pipeline.source, pipeline.find_connection())
    decode = _bound(pipeline.source, placed)
    steps = [step.behind(decode) for step in pipeline.steps]
    return pipeline.model_copy(update={"decode": decode, "steps": steps})


def _bound(source: Source, decode: Decode) -> Decode:
    return decode.bind(source.named_topics())


def _joined(stream: tuple[BoundStep, ...], bind: Bind) -> Iterator[Branch]:
    joins = [bound.step for bound in stream if isinstance(bound.step, Joining)]
    for number, step in enumerate(joins, 1):
        source, decode, steps, time = step.other
        yield Branch(number, source, _bound(source, decode), tuple(map(bind, steps)), step, time)


def _refuse_shared_topics(branches: tuple[Branch, ...]) -> None:
    for branch in branches[1:]:
        for topic in branch.source.named_topics():
            if any(other.source.reads(topic) for other in branches if other is not branch):
                raise ConfigError(
                    f"the topic {topic!r} is read by both sides of a join: the group has one place for "
                    "it; copy it into another topic first"
                )
