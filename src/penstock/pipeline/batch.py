"""A batch as a sink is given it, and the marks by which a sink knows what it has written."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from typing_extensions import Self

from penstock.errors import FencedError
from penstock.pipeline.source_log import Partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.config import Connection

Ranges = dict[Partition, tuple[int, int]]
"""The first offset of each partition, and the one after the last."""


class Delivery(str, Enum):
    """What is promised about each record when processes die."""

    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


EVERY_DELIVERY = frozenset(Delivery)


class Mark(NamedTuple):
    """The place of one write in its pipeline's life; a later write has a greater one."""

    epoch: int
    batch: int
    part: int


class Numbered(Protocol):
    """Something of an epoch: a mark, or a stamp of a commit."""

    @property
    def epoch(self) -> int:
        """Return the number of the epoch."""
        ...

    def _replace(self, *, epoch: int) -> Self: ...


AnyNumbered = TypeVar("AnyNumbered", bound=Numbered)


def renumbered(mark: AnyNumbered, number: int, earlier: Container[int]) -> AnyNumbered:
    """Return a mark of an epoch with the number that the epoch has now; others as they are.

    >>> renumbered(Mark(7, 3, 0), 9, {7}), renumbered(Mark(6, 3, 0), 9, {7})
    (Mark(epoch=9, batch=3, part=0), Mark(epoch=6, batch=3, part=0))
    """
    return mark._replace(epoch=number) if mark.epoch in earlier else mark


@dataclass(frozen=True)
class LastWrite:
    """The newest write of a pipeline that a sink knows: its mark, and the records that it wrote.

    Where an epoch was claimed and nothing was written in it yet, the batch of the mark is -1, and the
    ranges are those of the last write before it.
    """

    mark: Mark
    ranges: Ranges = field(default_factory=dict)
    # The ids of the topics, where they are known: the ranges of one that was recreated say nothing.
    topics: dict[str, str] = field(default_factory=dict)
    # The marks of the writes that the ranges are of, where they are not `mark`: of earlier ones.
    marks: dict[Partition, Mark] = field(default_factory=dict, compare=False, repr=False)

    def mark_of(self, partition: Partition) -> Mark:
        """Return the mark of the write that a partition's range is of."""
        return self.marks.get(partition, self.mark)


CLAIMED = -1
"""The batch in the mark of an epoch that was claimed and has no write yet."""


def is_repetition(known: Mark | None, mark: Mark, pipeline: str) -> bool:
    """Return whether a sink whose newest mark is `known` has this write already.

    Only an equal epoch can be a repetition. A greater one belongs to another process, which claimed the
    pipeline: this one must not write.

    >>> is_repetition(Mark(7, 3, 0), Mark(7, 3, 0), "p"), is_repetition(Mark(6, 9, 0), Mark(7, 0, 0), "p")
    (True, False)
    >>> is_repetition(Mark(8, 0, 0), Mark(7, 3, 0), "p")
    Traceback (most recent call last):
    ...
    penstock.errors.FencedError: another process runs the pipeline 'p': the sink has epoch 8, ...
    """
    if known is None or known.epoch < mark.epoch:
        return False
    if known.epoch > mark.epoch:
        raise _fenced(known, mark, pipeline)
    return known >= mark


def refuse_claim(known: LastWrite | None, claimed: Mark, pipeline: str) -> None:
    """Refuse to claim an epoch where the target knows it, or a later one.

    >>> refuse_claim(LastWrite(Mark(7, 3, 0)), Mark(7, CLAIMED, 0), "p")
    Traceback (most recent call last):
    ...
    penstock.errors.FencedError: another process runs the pipeline 'p': the sink has epoch 7, ...
    """
    if known and (known.mark.epoch >= claimed.epoch):
        raise _fenced(known.mark, claimed, pipeline)


def _fenced(known: Mark, mark: Mark, pipeline: str) -> FencedError:
    return FencedError(
        f"another process runs the pipeline {pipeline!r}: the sink has epoch {known.epoch}, this "
        f"process has {mark.epoch} and must not write; stop one of the two, or give them different names"
    )


@dataclass(frozen=True)
class Batch:
    """Rows to write, and exactly which records of the source they came from.

    A batch in which something is refused is written in parts, one after the other, each as a Batch.
    """

    rows: DataFrame
    pipeline: str
    epoch: int
    id: int
    connection: Connection
    ranges: Ranges = field(default_factory=dict)
    # The first one since the start: an earlier process may have written it, in part or as a whole.
    may_repeat: bool = True
    part: int = 0
    # A part that was refused before and is tried again, after records that come later were written.
    again: bool = False
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    # The ids of the topics, where they are known.
    topics: dict[str, str] = field(default_factory=dict)

    @property
    def mark(self) -> Mark:
        """Return what a sink stores with the rows: it has this write if its mark is equal or greater."""
        return Mark(self.epoch, self.id, self.part)

    @property
    def as_write(self) -> LastWrite:
        """Return what a sink stores with the rows: the mark, and the ranges of their records."""
        return LastWrite(self.mark, self.ranges, self.topics)

    @property
    def label(self) -> str:
        """Return the batch's unique name, which stays the same when the batch is run again."""
        # A character that no pipeline's name can have, so that no label is the prefix of another.
        return "~".join((self.pipeline, *map(str, self.mark)))

    @property
    def records(self) -> int:
        """Return how many offsets the batch spans, including dropped and filtered records."""
        return sum(end - start for start, end in self.ranges.values())
