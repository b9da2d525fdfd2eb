"""One write of a replay: the rows of some letters into the sink, and the letters of what fails again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from penstock.engine.batch_writing import Writing
from penstock.engine.claims import Claims, Writers
from penstock.engine.counting import Failures, Refused, Written
from penstock.engine.dead_letter_batch import write_dead_letters
from penstock.engine.dead_letters.dead_letter_store import Plan
from penstock.engine.dead_letters.letter import DeadLetter
from penstock.engine.reasons import refusal
from penstock.engine.state_dir import state_folder
from penstock.engine.stateful.plan import Plan as StepPlan
from penstock.engine.stream import RECORD, sink_schema
from penstock.pipeline import Batch, Mark, Opening, Pipeline
from penstock.pipeline.storage import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.config import Connection


class SomeRefusedError(Exception):
    """Some letter of several is refused."""


class ReplayWrite:
    """One write of letters, and the letters of what fails in it."""

    def __init__(
        self,
        pipeline: Pipeline,
        spark: SparkSession,
        connection: Connection,
        plan: Plan,
        letters: Sequence[DeadLetter],
        *,
        steps: StepPlan,
    ) -> None:
        self._pipeline = pipeline
        self._steps = steps
        self._spark = spark
        # Plans of earlier versions may have a record twice.
        self._letters = list({letter.id: letter for letter in letters}.values())
        rows = [_as_record(letter) for letter in self._letters]
        self._records = (
            spark.createDataFrame(rows, RECORD).coalesce(1).sortWithinPartitions("offset")
        )
        name, mark = _mark(pipeline.name, plan)
        self._batch = Batch(
            # Without ranges: its mark needs no topic of the source, which may be gone.
            rows=steps.decoded(self._records),
            pipeline=name,
            epoch=mark.epoch,
            id=mark.batch,
            connection=connection,
            delivery=pipeline.delivery,
        )

    def run(self) -> Written:
        """Write the rows, then what fails; a refusal is raised where there is more than one letter."""
        with closing(self._open()) as writers:
            # The sinks are prepared under the replay's own name: the pipeline may be running.
            writers.prepare(sink_schema(self._steps, self._spark))
            written = self._written(writers)
            if written.failed:
                decode, letters = self._pipeline.decode, writers.dead_letters
                write_dead_letters(self._records, decode, written, self._batch, letters)
        return written

    def _written(self, writers: Writers) -> Written:
        folder = Folder(self._spark, f"{state_folder(self._pipeline)}/replays/parts")
        writing = Writing(
            self._pipeline,
            self._steps,
            Claims(self._pipeline, writers),
            parts=folder,
            records=lambda _: self._records,
            part=lambda _: (self._records, []),
        )
        try:
            return writing.write_whole(self._batch)
        except Exception as error:
            if (why := refusal(error)) is None:
                raise
            if len(self._letters) > 1:
                raise SomeRefusedError(why[2]) from error
            (letter,) = self._letters
            refused = Refused(letter.topic, letter.partition, letter.offset, *why)
            return Written(0, Failures(), (refused,))

    def _open(self) -> Writers:
        batch = self._batch
        partitions = {(letter.topic, letter.partition) for letter in self._letters}
        opening = Opening(
            self._spark, batch.pipeline, batch.connection, batch.delivery, tuple(partitions)
        )
        return Writers.open(self._pipeline, opening)


def _mark(pipeline: str, plan: Plan) -> tuple[str, Mark]:
    """Return the name and the mark of a replay.

    The name has a sign that no pipeline's name has, and is of this replay alone: no other write has its
    marks, so it neither fences the running pipeline nor another replay, and no clock matters.
    """
    if not plan.owner:  # as earlier versions did it
        return f"{pipeline}~replay", Mark(0, plan.number, 0)
    return f"{pipeline}~replay-{plan.number}", Mark(plan.number, 0, 0)


def _as_record(letter: DeadLetter) -> tuple[object, ...]:
    headers = [{"key": key, "value": value} for key, value in letter.headers]
    return (
        letter.key, letter.value, letter.topic, letter.partition, letter.offset,
        letter.timestamp, 0, headers,
    )  # fmt: skip
