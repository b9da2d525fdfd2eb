"""Writes one batch to the end: rows to the sink, whole or in parts; bad records to the dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import Observation
from pyspark.sql import functions as f

from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Epoch
from penstock.engine.claims import Claims, keeps_marks
from penstock.engine.counting import (
    Failures,
    Refused,
    Written,
    aggregated,
    all_rows,
    counted,
    failures_in,
)
from penstock.engine.dead_letter_batch import write_dead_letters
from penstock.engine.phases import phase
from penstock.engine.reasons import refusal
from penstock.engine.stateful.plan import Plan
from penstock.engine.topic_watcher import Loss
from penstock.engine.turns import named
from penstock.errors import PipelineFailedError
from penstock.pipeline import FAILED, Batch, Decode, Delivery, Pipeline, RefusedRow
from penstock.pipeline.computed_rows import computed, reads_once
from penstock.pipeline.source_log import Span, spans_in
from penstock.pipeline.storage import Folder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

log = event_logger(__name__)

Records = Callable[[Batch], "DataFrame"]
"""Gives the records of a batch once more, whole, with their headers."""
Part = Callable[[Batch], tuple["DataFrame", list[Loss]]]
"""Gives the records of a part of a batch, and what Kafka has no more of it."""
Write = Callable[[Batch], "Sequence[RefusedRow] | None"]
"""Writes rows, and returns those that the target refused by themselves."""


class DecodeNote:
    """Which decode the rows of an epoch were written with: noted before the first write, and compared.

    A process may end after the rows of a batch were written, and before its dead letters were. If the
    next one decodes in another way, a record that failed may decode: it would be in neither of them.
    """

    def __init__(self, epoch: Epoch, decode: Decode) -> None:
        self._epoch = epoch
        self._current = decode.identity()
        self._noted = epoch.decode()

    def keep(self) -> None:
        """Note the current decode, if it is not noted."""
        if self._noted != self._current:
            self._epoch.note_decode(self._current)
            self._noted = self._current

    def require_same(self, batch: Batch) -> None:
        """Raise if the rows of a batch were written with another decode than the current one."""
        if self._noted not in (None, self._current):
            raise PipelineFailedError(
                f"batch {batch.id} of {batch.pipeline!r} was written with another decode than the "
                "current one, and its process ended before its dead letters were written: a record "
                "that failed then may decode now, and would be in neither; start it once with the "
                f"decode that it had ({self._noted:.500}; now: {self._current:.500}), or choose where "
                "to go on by resetting the offsets of its group"
            )


class Writing:
    """Writes the batches of one pipeline, one after the other."""

    def __init__(
        self,
        pipeline: Pipeline,
        plan: Plan,
        claims: Claims,
        *,
        parts: Folder,
        records: Records,
        part: Part,
        decode_note: DecodeNote | None = None,
        part_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._pipeline = pipeline
        self._decode_note = decode_note
        self._plan = plan
        self._claims = claims
        self._parts = parts
        self._records = records
        self._part = part
        self._part_written = part_written
        self._split: Splitting | None = None
        # Known after the first batch: the steps are the same for all.
        self._reads_once: bool | None = None

    def run(self, batch: Batch) -> Written:
        """Write the rows, then the bad records; return what became of them."""
        with phase("write"):
            written = self._whole_or_in_parts(batch)
        if not written.failed:
            return written
        with phase("dead_letters"):
            return replace(written, example=self._write_dead_letters(batch, written))

    def write_whole(self, batch: Batch) -> Written:
        """Write the good rows as one write; what a step or the sink refuses is raised."""
        return self._write_once(batch)

    def _whole_or_in_parts(self, batch: Batch) -> Written:
        """Write the batch; if something in it is refused, write it in parts to find out what."""
        if self._split:
            self._split.forget()  # that batch is noted as done, or this one would not have begun
        most = self._pipeline.max_refused
        self._split = Splitting(self._parts, batch, self._write_part, most)
        if not (batch.may_repeat and self._split.begun()):
            try:
                written = self._write_once(batch)
            except Exception as error:
                if refusal(error) is None or not self._may_split(batch):
                    raise
                log.warning(
                    "batch_refused",
                    pipeline=batch.pipeline,
                    batch=batch.id,
                    reason=refusal(error),
                )
            else:
                self._split = None
                return written
        return self._split.run()

    def _write_part(self, part: Batch) -> Written:
        records, lost = self._part(part)
        written = self._write_once(replace(part, rows=self._plan.decoded(records)))
        self._part_written()
        return replace(written, lost=tuple(lost))

    def _may_split(self, batch: Batch) -> bool:
        """Return whether parts of a refused batch can be written without writing a record twice."""
        return batch.delivery is not Delivery.AT_MOST_ONCE or keeps_marks(self._pipeline)

    def _write_once(self, batch: Batch) -> Written:
        """Write the rows, or count them if the sink has them: that is decided before any step runs."""
        if not self._claims.has(batch):
            if self._decode_note:
                self._decode_note.keep()
            return self._write(batch, self._claims.writers.rows.write)
        if self._decode_note:
            self._decode_note.require_same(batch)
        log.info("batch_was_written", pipeline=batch.pipeline, batch=batch.id, part=batch.part)
        try:
            return self._write(batch, _count)
        except Exception as error:
            if refusal(error) is None:
                raise
        counts = aggregated(batch.rows, _decoded_counts())
        return Written(counts["rows"], Failures(counts["failed"], counts["fingerprint"]))

    def _write(self, batch: Batch, write: Write) -> Written:
        """Write the good rows; count them and the bad records in the same pass."""
        decoding, writing = Observation(), Observation()
        decoded = batch.rows.observe(decoding, *_decoded_counts())
        rows = decoded.where(f.col(FAILED).isNull()).drop(FAILED)
        with named(batch), ExitStack() as stack:
            if self._plan.batch:
                rows = self._after_steps(rows, stack).observe(writing, all_rows())
            refused = write(replace(batch, rows=rows)) or ()
            failed = counted(decoding) or aggregated(batch.rows, _decoded_counts())
            done = failed
            if self._plan.batch:
                done = counted(writing) or aggregated(rows, [all_rows()])
        failures = Failures(failed["failed"], failed["fingerprint"])
        return Written(done["rows"] - len(refused), failures, self._records_of(refused, batch))

    def _after_steps(self, rows: DataFrame, stack: ExitStack) -> DataFrame:
        """Return what the steps make of rows, which are computed first unless they are read once."""
        made = self._plan.after_steps(rows)
        if self._reads_once is None:
            self._reads_once = reads_once(made)
        if self._reads_once:
            return made
        return self._plan.after_steps(stack.enter_context(computed(rows)))

    def _records_of(self, rows: Iterable[RefusedRow], batch: Batch) -> tuple[Refused, ...]:
        """Return the records of refused rows, each once, with the reason of its first row."""
        by_record = {row[:3]: row for row in reversed([*rows])}
        refused = [Refused(*row[:3], "write", *row[3:]) for row in by_record.values()]
        if len(refused) > self._pipeline.max_refused:
            raise too_many(self._pipeline.max_refused, batch, refused[0])
        return tuple(refused)

    def _write_dead_letters(self, batch: Batch, written: Written) -> str:
        """Read the batch's records again and write the bad ones to the dead letters."""
        pipeline, writer = self._pipeline, self._claims.writers.dead_letters
        example = write_dead_letters(self._records(batch), pipeline.decode, written, batch, writer)
        log.warning(
            "records_failed",
            pipeline=pipeline.name,
            batch=batch.id,
            failed=written.failed,
            example=example,
        )
        return example


def _decoded_counts() -> list[Column]:
    return [*failures_in(), f.count_if(f.col(FAILED).isNull()).alias("rows")]


def _count(batch: Batch) -> None:
    """Let the rows pass by, so that they are counted."""
    batch.rows.write.format("noop").mode("overwrite").save()


@dataclass(frozen=True)
class _Part:
    spans: list[Span]
    number: int = 0
    # Whether it is one record that was refused before.
    again: bool = False


@dataclass
class _Plan:
    """What was done of a batch and what is left; the first part that is left may be under way."""

    left: list[_Part]
    begun: int = 0
    rows: int = 0
    failed: int = 0
    fingerprint: int = 0
    refused: list[Refused] = field(default_factory=list)
    lost: list[Loss] = field(default_factory=list)


class Splitting:
    """One batch, halved until the records that a step or the sink refuses are found.

    What is under way and what is done is written down each time, so that a process that dies goes on with
    it: a part keeps its number, and the sink knows by it whether it has the part already.
    """

    def __init__(
        self, folder: Folder, batch: Batch, write: Callable[[Batch], Written], most: int
    ) -> None:
        self._folder = folder
        self._batch = batch
        self._write = write
        self._most = most
        # A process that was taken over from may still write its plan: each number has its own.
        self._name = f"{batch.id}~{batch.epoch}"
        self._earlier: list[str] = []

    def begun(self) -> bool:
        """Return whether an earlier run of this batch was split."""
        self._earlier = self._plans()
        return bool(self._earlier)

    def run(self) -> Written:
        """Write all parts and return what became of the whole."""
        plan = self._load()
        while plan.left:
            self._take(plan)
        failures = Failures(plan.failed, plan.fingerprint)
        return Written(plan.rows, failures, tuple(plan.refused), lost=tuple(plan.lost))

    def forget(self) -> None:
        """Remove what was written down, once the batch cannot come back."""
        for name in {*self._earlier, self._name}:
            self._folder.remove(name)

    def _take(self, plan: _Plan) -> None:
        """Write the first part that is left: it is done then, or is halved, or is a refused record."""
        part = plan.left[0]
        if not part.number:
            plan.begun += 1
            part = plan.left[0] = replace(part, number=plan.begun)
            self._save(plan)
        try:
            written = self._write(self._as_batch(part))
        except Exception as error:
            if (why := refusal(error)) is None:
                raise
            self._divide(plan, part.spans, why)
        else:
            plan.rows += written.rows
            plan.failed += written.failures.count
            plan.fingerprint += written.failures.fingerprint
            plan.lost += written.lost or ()
            plan.refused += written.refused
            del plan.left[0]
        if len(plan.refused) > self._most:
            last = plan.refused[-1]
            self._doubt(plan)
            raise too_many(self._most, self._batch, last)
        self._save(plan)

    def _as_batch(self, part: _Part) -> Batch:
        ranges = {(span.topic, span.partition): (span.start, span.end) for span in part.spans}
        number, again = part.number, part.again
        return replace(self._batch, ranges=ranges, part=number, again=again, may_repeat=True)

    def _divide(self, plan: _Plan, spans: list[Span], why: tuple[str, str, str]) -> None:
        if len(smaller := halves(spans)) > 1:
            plan.left[0:1] = [_Part(half) for half in smaller]
            return
        (span,) = spans
        plan.refused.append(Refused(span.topic, span.partition, span.start, *why))
        del plan.left[0]

    def _doubt(self, plan: _Plan) -> None:
        """Take every refusal back: once the table or the step is fixed, those records may be good.

        They are parts of their own with new numbers, so what was written keeps its marks.
        """
        again = [Span(r.topic, r.partition, r.offset, r.offset + 1) for r in plan.refused]
        plan.left[:0] = [_Part([span], again=True) for span in again]
        plan.refused.clear()
        self._save(plan)

    def _load(self) -> _Plan:
        if text := self._folder.read([self._name, *self._earlier][-1]):
            return msgspec.json.decode(text, type=_Plan)
        return _Plan([_Part(half) for half in halves(spans_in(self._batch.ranges))])

    def _plans(self) -> list[str]:
        """Return the names of the batch's plans, the one of the latest process last."""
        epochs: dict[int, str] = {}
        for name in self._folder.names():
            batch, _, epoch = name.partition("~")  # an earlier release wrote the batch alone
            if batch == str(self._batch.id):
                epochs[int(epoch or 0)] = name
        return [name for _, name in sorted(epochs.items())]

    def _save(self, plan: _Plan) -> None:
        self._folder.write(self._name, msgspec.json.encode(plan).decode())


def too_many(most: int, batch: Batch, one: Refused) -> PipelineFailedError:
    """Return the error of a batch of which more records are refused than the definition allows."""
    return PipelineFailedError(
        f"more than {most} records of batch {batch.id} were refused, one of them "
        f"({one.topic}-{one.partition}-{one.offset}) with: {one.error}; that many indicate an error in "
        "a step or in the target, not in the records: fix it, or raise 'max_refused'"
    )


def halves(spans: list[Span]) -> list[list[Span]]:
    """Divide spans in two, whole partitions first; a single record is not divided.

    >>> halves([Span("t", 0, 0, 5)])
    [[Span(topic='t', partition=0, start=0, end=2)], [Span(topic='t', partition=0, start=2, end=5)]]
    >>> len(halves([Span("t", 0, 0, 5), Span("t", 1, 7, 8)]))
    2
    >>> halves([Span("t", 0, 4, 5)])
    [[Span(topic='t', partition=0, start=4, end=5)]]
    """
    if len(spans) > 1:
        middle = len(spans) // 2
        return [spans[:middle], spans[middle:]]
    (span,) = spans
    if span.end - span.start <= 1:
        return [spans]
    cut = (span.start + span.end) // 2
    return [[span._replace(end=cut)], [span._replace(start=cut)]]
