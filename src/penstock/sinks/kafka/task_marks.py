"""Where a task keeps the mark of what it wrote, and what a mark that is there means for it.

A mark is an offset that the group `<pipeline>.sink` commits in the transaction of the records: the end
of what was read from the source, with the name of the write as its note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from penstock.errors import TerminalError
from penstock.pipeline import Batch, Mark, Partition, is_repetition
from penstock.pipeline.source_log import Span

_SINK = ".sink"


class Stored(Struct, frozen=True):
    """A mark as it is stored in Kafka."""

    offset: int
    mark: Mark
    # Where the records of that write begin, if the mark has it.
    start: int | None = None
    # The mark of the last write, where this one claims an epoch.
    before: Mark | None = None

    @property
    def written(self) -> Mark:
        """Return the mark of the write that ended at this offset."""
        return self.before or self.mark

    def covers(self, span: Span, mark: Mark, pipeline: str, again: bool) -> bool:
        """Return whether the records of this span were written, by this write or by an earlier one.

        A batch that is written in parts was written whole before, and some tasks may have succeeded.
        But if the span is written again because it was refused, only its own mark counts.
        """
        if is_repetition(self.mark, mark, pipeline):
            return True
        return not again and self._same_batch(mark) and self.offset >= span.end > span.start

    def cuts(self, span: Span, mark: Mark) -> bool:
        """Return whether the mark is inside the span, where no write of this batch ends."""
        return self._same_batch(mark) and span.start < self.offset < span.end

    def _same_batch(self, mark: Mark) -> bool:
        return self.mark[:2] == mark[:2]


class TaskScope(Struct, frozen=True):
    """What one task writes: under which transactional id, and with which marks."""

    transaction: str
    group: str
    spans: tuple[Span, ...]
    # Whether they were refused before: then only their own mark counts, not a later one.
    again: bool = False

    @property
    def pipeline(self) -> str:
        """Return the pipeline whose marks these are."""
        return self.transaction.partition(_SINK)[0]

    @property
    def partitions(self) -> list[Partition]:
        """Return the partitions at which its marks are."""
        return [(span.topic, span.partition) for span in self.spans]

    def is_written(self, stored: Mapping[tuple[str, int], Stored], mark: Mark) -> bool:
        """Return whether the task's records are in the topic already."""
        marks = [(span, stored.get((span.topic, span.partition))) for span in self.spans]
        covered = [
            one is not None and one.covers(span, mark, self.pipeline, self.again)
            for span, one in marks
        ]
        cut = any(one is not None and one.cuts(span, mark) for span, one in marks)
        if all(covered):
            return True
        if any(covered) or cut:
            raise TerminalError(
                f"a part of batch {mark.batch} was written by tasks that had other records than the "
                f"current ones (see group {self.group!r}): the pipeline's definition was changed in the "
                "middle of a batch; run the old definition once more, then change it"
            )
        return False


def to_claim(
    pipeline: str, topic: str, partitions: Sequence[Partition], *, abroad: bool
) -> tuple[TaskScope, list[TaskScope]]:
    """Return every scope that a task may have: for a whole batch, and for each source partition."""
    name = f"{pipeline}{_SINK}"
    spans = [Span(*where, 0, 0) for where in partitions]
    if not abroad:
        target = [] if (topic, 0) in partitions else [Span(topic, 0, 0, 0)]
        whole = TaskScope(name, name, (*spans, *target))
        return whole, [TaskScope(f"{name}.{s.topic}-{s.partition}", name, (s,)) for s in spans]
    only = (Span(topic, 0, 0, 0),)
    own = [f"{name}.{span.topic}-{span.partition}" for span in spans]
    return TaskScope(name, name, only), [TaskScope(each, each, only) for each in own]


def scopes_of(batch: Batch, topic: str, spans: Sequence[Span] | None) -> list[TaskScope]:
    """Return the scope of each task: one for each span, or a single one for the whole batch."""
    name = f"{batch.pipeline}{_SINK}"
    if spans is not None:
        return [
            TaskScope(f"{name}.{span.topic}-{span.partition}", name, (span,), batch.again)
            for span in spans
        ]
    own = (Span(*where, *ends) for where, ends in sorted(batch.ranges.items()))
    read = tuple(span for span in own if span.end > span.start)
    return [TaskScope(name, name, read or (Span(topic, 0, 0, 0),), batch.again)]


def scopes_abroad(batch: Batch, topic: str, spans: Sequence[Span] | None) -> list[TaskScope]:
    """Return the scopes on another cluster, which does not have the source's topics.

    The marks belong to the topic that is written to, in a group for each partition of the source.
    """
    name = f"{batch.pipeline}{_SINK}"
    if spans is None:
        return [TaskScope(name, name, (Span(topic, 0, 0, 0),), batch.again)]
    own = (f"{name}.{span.topic}-{span.partition}" for span in spans)
    return [
        TaskScope(each, each, (Span(topic, 0, span.start, span.end),), batch.again)
        for each, span in zip(own, spans, strict=True)
    ]
