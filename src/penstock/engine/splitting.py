"""Finds the records that a step or the sink refuses, by halving the batch; the others are written.

What is under way and what is done is written down each time, so that a process that dies goes on with it:
a part keeps its number, and the sink knows by it whether it has the part already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from penstock.engine.counting import Failures
from penstock.engine.losses import Loss
from penstock.engine.reasons import refusal
from penstock.errors import PipelineFailedError
from penstock.pipeline import Batch
from penstock.pipeline.storage import Folder


class Span(NamedTuple):
    """The records of one partition from `start` up to, not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int


class Refused(NamedTuple):
    """A record that a step or the sink refused, and why."""

    topic: str
    partition: int
    offset: int
    stage: str
    error_type: str
    error: str


@dataclass(frozen=True)
class Written:
    """What became of a batch, or of a part of it."""

    rows: int
    failures: Failures
    refused: tuple[Refused, ...] = ()
    late: int = 0
    # What Kafka had no more of it; None where the one who planned the batch has to find out.
    lost: tuple[Loss, ...] | None = None
    # One of the bad records, with its error.
    example: str | None = None

    @property
    def failed(self) -> int:
        """How many records are bad, for whatever reason."""
        return self.failures.count + len(self.refused) + self.late


@dataclass(frozen=True)
class _Part:
    spans: list[Span]
    number: int = 0


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
    """One batch, written part by part."""

    def __init__(
        self, folder: Folder, batch: Batch, write: Callable[[Batch], Written], most: int
    ) -> None:
        self._folder = folder
        self._batch = batch
        self._write = write
        self._most = most
        self._name = str(batch.id)

    def begun(self) -> bool:
        """Whether an earlier run of this batch got as far as parts."""
        return self._name in self._folder.names()

    def run(self) -> Written:
        """Write all parts and return what became of the whole."""
        plan = self._load()
        while plan.left:
            self._take(plan)
        failures = Failures(plan.failed, plan.fingerprint)
        return Written(plan.rows, failures, tuple(plan.refused), lost=tuple(plan.lost))

    def forget(self) -> None:
        """Remove what was written down, once the batch cannot come back."""
        self._folder.remove(self._name)

    def _take(self, plan: _Plan) -> None:
        """Write the first part that is left: it is done then, or is halved, or is a refused record."""
        part = plan.left[0]
        if not part.number:
            plan.begun += 1
            part = plan.left[0] = replace(part, number=plan.begun)
            self._save(plan)
        ranges = {(span.topic, span.partition): (span.start, span.end) for span in part.spans}
        try:
            written = self._write(
                replace(self._batch, ranges=ranges, part=part.number, may_repeat=True)
            )
        except Exception as error:
            if (why := refusal(error)) is None:
                raise
            self._divide(plan, part.spans, why)
        else:
            plan.rows += written.rows
            plan.failed += written.failures.count
            plan.fingerprint += written.failures.fingerprint
            plan.lost += written.lost or ()
            del plan.left[0]
        self._save(plan)

    def _divide(self, plan: _Plan, spans: list[Span], why: tuple[str, str, str]) -> None:
        if len(smaller := halves(spans)) > 1:
            plan.left[0:1] = [_Part(half) for half in smaller]
            return
        (span,) = spans
        plan.refused.append(Refused(span.topic, span.partition, span.start, *why))
        del plan.left[0]
        if len(plan.refused) > self._most:
            raise PipelineFailedError(
                f"more than {self._most} records of batch {self._batch.id} were refused, the last one "
                f"({span.topic}-{span.partition}-{span.start}) with: {why[2]}; so many point to a fault "
                "of a step or of the table, not of the records: mend it, or raise 'max_refused'"
            )

    def _load(self) -> _Plan:
        if text := self._folder.read(self._name):
            return msgspec.json.decode(text, type=_Plan)
        spans = [Span(*place, *ends) for place, ends in sorted(self._batch.ranges.items())]
        return _Plan([_Part(half) for half in halves([s for s in spans if s.end > s.start])])

    def _save(self, plan: _Plan) -> None:
        self._folder.write(self._name, msgspec.json.encode(plan).decode())


def halves(spans: list[Span]) -> list[list[Span]]:
    """Divide spans in two, whole partitions first; one record stays as it is.

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
