"""Runs dead letters through their pipeline once more: decode, steps and sink, as if they came now.

A replay is written down before it begins and after it is done, among the letters, and has marks of its
own in the sink: one that a kill cut short is finished first, and an exact sink has no row of it twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from penstock.config import Connection
from penstock.engine.bindings import Bindings
from penstock.engine.claims import keeps_marks
from penstock.engine.counting import Written
from penstock.engine.dead_letters.dead_letter_store import Plan
from penstock.engine.dead_letters.letter import DeadLetter
from penstock.engine.dead_letters.replay_lock import alone
from penstock.engine.dead_letters.replay_write import ReplayWrite, SomeRefusedError
from penstock.engine.dead_letters.replays import Replayed, Replays, refuse_unreadable
from penstock.engine.session import spark_session
from penstock.engine.shipping import shipped
from penstock.engine.stateful.plan import plan_of, with_bound_decode
from penstock.errors import ConfigError, PipelineFailedError
from penstock.pipeline import Delivery, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def replay(
    pipeline: Pipeline,
    letters: Sequence[DeadLetter],
    values: Mapping[str, bytes] | None = None,
    *,
    take_over: bool = False,
) -> Replayed:
    """Replay letters that are still open, with other values for those whose id is in `values`.

    Interrupted replays are finished first: those from this state folder, and with `take_over` also
    those of others, which must not run any more.
    """
    _refuse_state(pipeline)
    refuse_unreadable(letters)
    _refuse_imported(letters)
    edited = [_edited(letter, values or {}) for letter in letters]
    with alone(pipeline), closing(_Replays(pipeline)) as replays:
        done, error = replays.finish(take_over)
        for each in _rounds(edited):
            done += replays.run(each)
    if error:
        raise error
    return done


def _edited(letter: DeadLetter, values: Mapping[str, bytes]) -> DeadLetter:
    value = values.get(letter.full_id, values.get(letter.id, letter.value))
    return msgspec.structs.replace(letter, value=value)


def _rounds(letters: Sequence[DeadLetter]) -> Iterator[list[DeadLetter]]:
    """Divide letters so that no record is in a round twice: a write identifies records by offset."""
    left = list(letters)
    while left:
        first = {letter.id: letter for letter in reversed(left)}
        yield list(first.values())
        chosen = {letter.identity for letter in first.values()}
        left = [letter for letter in left if letter.identity not in chosen]


def _refuse_state(pipeline: Pipeline) -> None:
    if plan_of(pipeline).stream:
        raise ConfigError(
            f"{pipeline.name!r} has a step that keeps state, which only the running pipeline has: its "
            "dead letters cannot be replayed; send the records to the topic again"
        )


def _refuse_imported(letters: Sequence[DeadLetter]) -> None:
    if bad := next((letter for letter in letters if not letter.was_record), None):
        raise ConfigError(
            f"the dead letter {bad.id!r} cannot be replayed, because it was in no topic before: the "
            f"import could not make a record of it ({bad.error}); correct it in its system, or produce "
            "it to the import's topic, and drop the dead letter; choose others by their ids or --stage"
        )


class _Replays(Replays):
    """The replays of one call, one after the other."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._connection: Connection = pipeline.find_connection()
        self._spark: SparkSession = spark_session(pipeline.session_options)
        self._pipeline = shipped(self._spark, with_bound_decode(pipeline))
        self._bindings = Bindings()
        self._steps = plan_of(self._pipeline, self._bindings.bind)
        self._refused = 0
        super().__init__(pipeline)

    def close(self) -> None:
        """Release what the steps hold."""
        self._bindings.close()

    def _run(self, plan: Plan, letters: list[DeadLetter]) -> Replayed:
        """Write the rows in one write; where one is refused, each half is a replay of its own.

        Where the sink keeps no marks, at-most-once is kept by noting the end before the write.
        """
        once = self._pipeline.delivery is Delivery.AT_MOST_ONCE and not keeps_marks(self._pipeline)
        if once:
            self._log.end(plan)
        try:
            written = ReplayWrite(
                self._pipeline, self._spark, self._connection, plan, letters, steps=self._steps
            ).run()
        except (
            SomeRefusedError
        ) as error:  # nothing was written, and it is not known which one it is
            if once:
                raise PipelineFailedError(
                    f"a record of the replay was refused ({error}); with at-most-once into "
                    f"{self._pipeline.sink.name!r} none of its {len(letters)} letters is tried again"
                ) from error
            self._log.release(plan)
            middle = len(letters) // 2
            return self.run(letters[:middle]) + self.run(letters[middle:])
        if not once:
            self._log.end(plan)
        self._count(written)
        return Replayed(len(letters), written.rows, written.failed)

    def _count(self, written: Written) -> None:
        self._refused += len(written.refused)
        if self._refused > self._pipeline.max_refused:
            raise PipelineFailedError(
                f"more than {self._pipeline.max_refused} records of the replay were refused again, the "
                f"last one with: {written.refused[-1].error}; the others wait as before: fix the step "
                "or the table, or raise 'max_refused'"
            )
