"""A pipeline's two sinks while it runs, of rows and of dead letters: open, marked and claimed."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from typing_extensions import Self

from penstock.engine.dead_letter_batch import TABLE
from penstock.pipeline import Batch, Delivery, LastWrite, Opening, Pipeline, Ranges, Writer
from penstock.pipeline.derived_names import dead_letters_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass
class Writers:
    """Both writers; they are prepared before the first write."""

    rows: Writer
    dead_letters: Writer
    is_prepared: bool = False

    @classmethod
    def open(cls, pipeline: Pipeline, opening: Opening) -> Self:
        """Open both sinks."""
        with ExitStack() as opened:
            rows = opened.enter_context(pipeline.sink.open(opening))
            dead_letters = open_dead_letters(pipeline, opening)
            opened.pop_all()
        return cls(rows, dead_letters)

    def prepare(self, schema: StructType) -> None:
        """Make both targets ready, for rows of this schema, or fail before a record is read."""
        self.rows.prepare(schema)
        self.dead_letters.prepare(TABLE)
        self.is_prepared = True

    def close(self) -> None:
        """Close both."""
        with self.rows, self.dead_letters:
            return


def open_dead_letters(pipeline: Pipeline, opening: Opening) -> Writer:
    """Open the sink of dead letters: for whole records where it is a store of those."""
    sink = pipeline.dead_letter_sink
    opening = replace(opening, pipeline=dead_letters_of(opening.pipeline))
    store = sink.record_store(opening.connection)
    return store.open(opening) if store else sink.open(opening)


@dataclass(frozen=True)
class Claims:
    """Fences the processes that ran the pipeline before, in both of its sinks."""

    pipeline: Pipeline
    writers: Writers
    # Makes both targets ready; called before the first claim.
    prepare: Callable[[], None] = lambda: None

    @property
    def used(self) -> bool:
        """Return whether the sink stores marks: with at-least-once there are none."""
        return keeps_marks(self.pipeline)

    def last_write(self) -> LastWrite | None:
        """Return the last write of rows, None where none is known."""
        return self.writers.rows.last_write() if self.used else None

    def newest_epoch(self) -> int:
        """Return the greatest epoch that the sinks know; -1 where they know none."""
        asked = [writer for writer in self._both if self.used or writer.sink.names_by_label]
        return max(map(_epoch, asked), default=-1)

    def claim(self, epoch: int) -> LastWrite | None:
        """Claim a new epoch in both sinks; return the last write of rows before it."""
        if not self.used:
            return None
        self.prepare()
        rows, _ = (writer.claim(epoch) for writer in self._both)
        return rows

    def hold(self, epoch: int, continues: Container[int] = ()) -> bool:
        """Claim an epoch that goes on in a sink that does not know it; return whether there is one.

        The epoch has a new number, and `continues` the earlier ones, or the table was replaced.
        """
        if not self.used:
            return False
        behind = [writer for writer in self._both if _epoch(writer) < epoch]
        if behind:
            self.prepare()
        for writer in behind:
            writer.claim(epoch, continues)
        return bool(behind)

    def has(self, batch: Batch) -> bool:
        """Return whether the sink has this write already, by an earlier run of the same batch.

        It is called before any step runs: a definition that was changed meanwhile must not write the
        same records again. Only an equal epoch can be a repetition.

        Raises
        ------
        FencedError
            When another process has claimed the pipeline.
        """
        return self.used and batch.may_repeat and self.writers.rows.has(batch)

    def without_dead_letters(self, ranges: Ranges) -> Ranges:
        """Return what of these ranges the sink of dead letters does not have."""
        if not ranges:
            return {}
        known = self.writers.dead_letters.last_write()
        has = known.ranges if known else {}
        return {p: span for p, span in ranges.items() if has.get(p, (0, 0))[1] < span[1]}

    @property
    def _both(self) -> tuple[Writer, Writer]:
        return self.writers.rows, self.writers.dead_letters


def keeps_marks(pipeline: Pipeline) -> bool:
    """Return whether writes are marked, to detect repetitions and to fence old processes."""
    return (
        pipeline.delivery is not Delivery.AT_LEAST_ONCE
        and Delivery.EXACTLY_ONCE in pipeline.sink.delivers
    )


def _epoch(writer: Writer) -> int:
    known = writer.last_write()
    return known.mark.epoch if known else -1
