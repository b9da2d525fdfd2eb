"""Where a task keeps the mark of what it wrote, and what a mark that is there means for it.

A mark is an offset that the group `<pipeline>.sink` commits in the transaction of the records: the end
of what was read from the source, with the name of the write as its note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from penstock.errors import TerminalError
from penstock.pipeline import Batch, Mark
from penstock.sinks.kafka.spans import Span


class Stored(Struct, frozen=True):
    """A mark as it was found."""

    offset: int
    mark: Mark

    def covers(self, span: Span, mark: Mark) -> bool:
        """Whether the records of this span were written, by this very write or by an earlier one.

        A batch that is written in parts was written whole before, and some tasks may have come through.
        """
        if self.mark >= mark:
            return True
        return self._same_batch(mark) and self.offset >= span.end > span.start

    def cuts(self, span: Span, mark: Mark) -> bool:
        """Whether the mark stands in the middle of the span, where no write of this batch ends."""
        return self._same_batch(mark) and span.start < self.offset < span.end

    def _same_batch(self, mark: Mark) -> bool:
        return self.mark[:2] == mark[:2]


class Place(Struct, frozen=True):
    """What one task writes: under which name, and with which marks."""

    transaction: str
    group: str
    spans: tuple[Span, ...]

    def is_written(self, stored: Mapping[tuple[str, int], Stored], mark: Mark) -> bool:
        """Whether the task's records are in the topic already."""
        found = [(span, stored.get((span.topic, span.partition))) for span in self.spans]
        covered = [one is not None and one.covers(span, mark) for span, one in found]
        cut = any(one is not None and one.cuts(span, mark) for span, one in found)
        if all(covered):
            return True
        if any(covered) or cut:
            raise TerminalError(
                f"a part of batch {mark.batch} was written by tasks that had other records than those "
                f"of now (see group {self.group!r}): the pipeline's definition was changed in the "
                "middle of a batch; run it once more as it was, then change it"
            )
        return False


def places_of(batch: Batch, topic: str, spans: Sequence[Span] | None) -> list[Place]:
    """Return the place of each task: one for each span, or a single one for the whole batch."""
    name = f"{batch.pipeline}.sink"
    if spans is not None:
        return [Place(f"{name}.{span.topic}-{span.partition}", name, (span,)) for span in spans]
    own = (Span(*where, *ends) for where, ends in sorted(batch.ranges.items()))
    read = tuple(span for span in own if span.end > span.start)
    return [Place(name, name, read or (Span(topic, 0, 0, 0),))]


def places_abroad(batch: Batch, topic: str, spans: Sequence[Span] | None) -> list[Place]:
    """Return the places on another cluster, which does not have the source's topics.

    The marks hang on the topic that is written to, in a group for each partition of the source.
    """
    name = f"{batch.pipeline}.sink"
    if spans is None:
        return [Place(name, name, (Span(topic, 0, 0, 0),))]
    own = (f"{name}.{span.topic}-{span.partition}" for span in spans)
    return [
        Place(each, each, (Span(topic, 0, span.start, span.end),))
        for each, span in zip(own, spans, strict=True)
    ]
