"""Claims an epoch in the marks of a sink: from then on no earlier process can commit a transaction.

Every transactional id that a task of an earlier process may use is taken over, which ends what it has
under way, and the mark is written in a transaction of that very id. A task that begins afterwards reads
the mark and knows that it was fenced.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from penstock.config import Connection
from penstock.errors import FencedError
from penstock.kafka import GroupOffsets
from penstock.kafka.producing.record_transaction import Transaction
from penstock.pipeline import (
    CLAIMED,
    LastWrite,
    Mark,
    Partition,
    is_repetition,
    refuse_claim,
    renumbered,
)
from penstock.pipeline.source_log import Span
from penstock.sinks.kafka.kafka_marks import Marks, marks_in, note_of
from penstock.sinks.kafka.task_marks import Stored, TaskScope

_AT_ONCE = 8
_TRIES = 5
StoredMarks = dict[Partition, Stored]


class Claim:
    """Claims one epoch of a pipeline in the scopes of its tasks."""

    def __init__(
        self, connection: Connection, pipeline: str, epoch: int, continues: Container[int] = ()
    ) -> None:
        self._connection = connection
        self._pipeline = pipeline
        self._mark = Mark(epoch, CLAIMED, 0)
        self._continues = continues

    def make(self, whole: TaskScope, others: Sequence[TaskScope]) -> list[StoredMarks]:
        """Claim the scope of a whole batch first, then the others; return the marks before it.

        Of two processes that claim the same epoch one is refused at the first scope.
        """
        first = self._at(whole, is_first=True)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [first, *pool.map(partial(self._take_over, whole), others)]

    def _take_over(self, whole: TaskScope, scope: TaskScope) -> StoredMarks:
        """Claim one of the other scopes, unless a later epoch has claimed the first one.

        A process with an earlier epoch that is claiming, too, may take the transactional id back: it
        learns from the marks that it must end, and this one takes the id over again.
        """
        for _ in range(_TRIES):
            self._refuse_later(stored_marks(self._connection, whole.group, whole.partitions))
            with suppress(FencedError):
                return self._at(scope)
        return self._at(scope)

    def _at(self, scope: TaskScope, *, is_first: bool = False) -> StoredMarks:
        marks = Marks(self._connection, scope.group)
        try:
            with Transaction(self._connection, scope.transaction, {}) as transaction:
                stored = marks.read(scope.spans)
                if is_first:
                    refuse_claim(last_write_of(stored), self._mark, self._pipeline)
                else:
                    self._refuse_later(stored)
                transaction.begin()
                claimed = dict(self._claimed(span, stored) for span in scope.spans)
                marks.commit(transaction, claimed)
                return stored
        finally:
            marks.close()

    def _refuse_later(self, stored: StoredMarks) -> None:
        """Raise where a mark is of a later epoch."""
        for each in stored.values():
            is_repetition(each.mark, self._mark, self._pipeline)

    def _claimed(self, span: Span, stored: StoredMarks) -> tuple[Span, str]:
        """Return the span and the note of the claim's mark: how far the partition was written before."""
        before = stored.get((span.topic, span.partition))
        if before is None:
            return span, self._note(self._mark, span.start)
        start, own = _begin(before), self._mark
        written = renumbered(before.written, own.epoch, self._continues)
        # Also where the claim of the whole, which comes first, has carried the write over already.
        continues = written.epoch == own.epoch
        note = self._note(written, start) if continues else self._note(own, start, written)
        return span._replace(start=start, end=before.offset), note

    def _note(self, mark: Mark, start: int, before: Mark | None = None) -> str:
        return note_of("~".join((self._pipeline, *map(str, mark))), start, before)


def last_write_of(marks: Mapping[Partition, Stored]) -> LastWrite | None:
    """Return the newest of the marks, and how far each partition is written."""
    if not marks:
        return None
    ranges = {where: (_begin(each), each.offset) for where, each in marks.items() if each.offset}
    newest = max(each.mark for each in marks.values())
    return LastWrite(newest, ranges, marks={where: marks[where].written for where in ranges})


def _begin(stored: Stored) -> int:
    return stored.offset if stored.start is None else min(stored.start, stored.offset)


def stored_marks(
    connection: Connection, group: str, partitions: Sequence[Partition] | None
) -> StoredMarks:
    """Return the marks of a group as they are now, without waiting for open transactions."""
    with GroupOffsets(connection, group) as offsets:
        committed = offsets.committed_with_metadata(partitions)
    return marks_in((where, *each) for where, each in committed.items())
