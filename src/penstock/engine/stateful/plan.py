"""What of a pipeline runs on Spark's stream, and what on each of its batches.

Without a step that keeps state everything is done batch by batch. With one, all up to the last of such
steps is part of the stream, and the batches have what comes out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.errors import ConfigError
from penstock.pipeline import Decode, Pipeline, Source, Step
from penstock.pipeline.stateful import Joining, Stateful
from penstock.sources.kafka import KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class Branch:
    """One way into the pipeline: records of some topics and what is done to each row of them."""

    number: int
    source: KafkaSource
    decode: Decode
    steps: tuple[Step, ...] = ()
    # The first step that keeps state of these rows, and the column that it goes by.
    keeper: Stateful | None = None
    time: str = ""

    @property
    def place(self) -> str:
        """Where in the definition it is written."""
        return "" if self.number == 0 else f"{self.keeper.name if self.keeper else ''}."

    def until(self) -> Column:
        """Return up to which time a row is taken, in microseconds since 1970."""
        own = f.unix_micros(f.col(self.time))
        return self.keeper.until(own) if self.keeper and self.number == 0 else own


@dataclass(frozen=True)
class Plan:
    """The branches, what happens on the stream where they meet, and what happens to each batch."""

    branches: tuple[Branch, ...]
    stream: tuple[Step, ...] = ()
    batch: tuple[Step, ...] = ()
    delay: float = 0.0

    @property
    def sources(self) -> list[KafkaSource]:
        """Every source, the pipeline's own first."""
        return [branch.source for branch in self.branches]

    @property
    def before(self) -> int:
        """How many of the pipeline's steps come before those of a batch."""
        return len(self.branches[0].steps) + len(self.stream)

    @property
    def is_stale(self) -> bool:
        """Whether a table that the stream is joined with is to be read again."""
        steps = (*self.stream, *(step for branch in self.branches for step in branch.steps))
        return any(step.is_stale for step in steps)

    @property
    def output_mode(self) -> str:
        """Spark's name for whether rows come out before they are final."""
        changes = any(isinstance(step, Stateful) and step.changes for step in self.stream)
        return "update" if changes else "append"


def plan_of(pipeline: Pipeline) -> Plan:
    """Divide a pipeline's steps."""
    own = _kafka(pipeline.source)
    steps = tuple(pipeline.steps)
    keepers = {n: step for n, step in enumerate(steps) if isinstance(step, Stateful)}
    if not keepers:
        return Plan((Branch(0, own, pipeline.decode),), batch=steps)
    first, behind = min(keepers), max(keepers) + 1
    keeper = keepers[first]
    main = Branch(0, own, pipeline.decode, steps[:first], keeper, keeper.time)
    stream = steps[first:behind]
    branches = (main, *_joined(stream))
    _refuse_shared_topics(branches)
    delay = max(step.delay for step in keepers.values())
    return Plan(branches, stream, steps[behind:], delay)


def _joined(stream: tuple[Step, ...]) -> Iterator[Branch]:
    joins = [step for step in stream if isinstance(step, Joining)]
    for number, step in enumerate(joins, 1):
        source, decode, steps, time = step.other
        yield Branch(number, _kafka(source), decode, tuple(steps), step, time)


def _kafka(source: Source) -> KafkaSource:
    if not isinstance(source, KafkaSource):
        raise ConfigError(f"a pipeline reads from Kafka; given {source.name!r}")
    return source


def _refuse_shared_topics(branches: tuple[Branch, ...]) -> None:
    for branch in branches[1:]:
        for topic in branch.source.topics:
            if any(other.source.reads(topic) for other in branches if other is not branch):
                raise ConfigError(
                    f"the topic {topic!r} is read by both sides of a join: the group has one place for "
                    "it; copy it into another topic first"
                )
