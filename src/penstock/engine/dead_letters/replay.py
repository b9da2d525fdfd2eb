"""Runs dead letters through their pipeline once more: decode, steps and sink, as if they came now.

A replay is written down before it begins and after it is done, among the letters, and has marks of its
own in the sink: one that a kill cut short is finished first, and an exact sink has no row of it twice.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.engine.bindings import Bindings
from penstock.engine.claims import keeps_marks
from penstock.engine.counting import Written
from penstock.engine.dead_letters.dead_letter_store import DeadLetterStore, Plan
from penstock.engine.dead_letters.letter import DeadLetter
from penstock.engine.dead_letters.replay_lock import alone
from penstock.engine.dead_letters.replay_write import ReplayWrite, SomeRefusedError
from penstock.engine.session import spark_session
from penstock.engine.shipping import shipped
from penstock.engine.state_dir import state_folder
from penstock.engine.stateful.plan import plan_of, with_bound_decode
from penstock.errors import ConfigError, PenstockError, PipelineFailedError
from penstock.pipeline import Delivery, Pipeline
from penstock.pipeline.storage import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = event_logger(__name__)


@dataclass(frozen=True)
class Replayed:
    """What became of the letters of a replay."""

    letters: int = 0
    rows: int = 0
    failed_again: int = 0
    # Letters that another replay or a drop took before this one could.
    taken: int = 0
    # Where replays were begun that have not ended and that only run from there, or are taken over.
    elsewhere: tuple[str, ...] = ()

    def __add__(self, more: Replayed) -> Replayed:
        return replace(
            self,
            letters=self.letters + more.letters,
            rows=self.rows + more.rows,
            failed_again=self.failed_again + more.failed_again,
            taken=self.taken + more.taken,
        )


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
    _refuse_unreadable(letters)
    _refuse_imported(letters)
    edited = [_edited(letter, values or {}) for letter in letters]
    with alone(pipeline), closing(_Replays(pipeline)) as replays:
        elsewhere, error = replays.finish(take_over)
        done = Replayed(elsewhere=elsewhere)
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


def _refuse_unreadable(letters: Sequence[DeadLetter]) -> None:
    if bad := next((letter for letter in letters if not letter.is_readable), None):
        raise ConfigError(
            f"the dead letter {bad.id!r} cannot be replayed, because it cannot be read ({bad.error}): "
            "choose others, or drop it"
        )


def _refuse_imported(letters: Sequence[DeadLetter]) -> None:
    if bad := next((letter for letter in letters if not letter.was_record), None):
        raise ConfigError(
            f"the dead letter {bad.id!r} cannot be replayed, because it was in no topic before: the "
            f"import could not make a record of it ({bad.error}); correct it in its system, or produce "
            "it to the import's topic, and drop the dead letter; choose others by their ids or --stage"
        )


class _Replays:
    """The replays of one call, one after the other."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._connection: Connection = pipeline.find_connection()
        self._spark: SparkSession = spark_session(pipeline.session_options)
        self._pipeline = shipped(self._spark, with_bound_decode(pipeline))
        self._bindings = Bindings()
        self._steps = plan_of(self._pipeline, self._bindings.bind)
        self._box = DeadLetterStore(pipeline)
        self._folder = Folder(self._spark, f"{state_folder(pipeline)}/replays")
        self._owner = self._known_owner()
        self._refused = 0

    def close(self) -> None:
        """Release what the steps hold."""
        self._bindings.close()

    def _known_owner(self) -> str:
        """Return the name of this state folder, by which its replays are known among the letters."""
        if not (owner := self._folder.read("owner")):
            owner = f"{socket.gethostname()}-{uuid4().hex[:12]}"
            self._folder.write("owner", owner)
        return owner

    def finish(self, take_over: bool) -> tuple[tuple[str, ...], PenstockError | None]:
        """Finish what was begun; return whose replays were left alone, and why one could not be finished.

        The lock says that no process runs a replay of this state folder now.
        """
        elsewhere: set[str] = set()
        failed: PenstockError | None = None
        for plan in self._box.unfinished():
            if plan.owner not in ("", self._owner) and not take_over:
                elsewhere.add(plan.owner)
            elif not plan.begun:
                self._box.release(plan)
            else:
                failed = self._finish(plan) or failed
        return tuple(sorted(elsewhere)), failed

    def _finish(self, plan: Plan) -> PenstockError | None:
        """Finish one; return why that failed: it must not prevent the replay of other letters."""
        try:
            self._run(plan, [note.restored() for note in plan.letters.values()])
        except PenstockError as error:
            log.warning("replay_unfinished", replay=plan.number, reason=str(error))
            return error
        return None

    def run(self, letters: Sequence[DeadLetter]) -> Replayed:
        """Replay those letters that are still open."""
        if (plan := self._box.claim(letters, self._owner)) is None:
            return Replayed(taken=len(letters))
        mine = [letter for letter in letters if letter.identity in plan.letters]
        return self._run(plan, mine) + Replayed(taken=len(letters) - len(mine))

    def _run(self, plan: Plan, letters: list[DeadLetter]) -> Replayed:
        """Write the rows in one write; where one is refused, each half is a replay of its own.

        Where the sink keeps no marks, at-most-once is kept by noting the end before the write.
        """
        once = self._pipeline.delivery is Delivery.AT_MOST_ONCE and not keeps_marks(self._pipeline)
        if once:
            self._box.end(plan)
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
            self._box.release(plan)
            middle = len(letters) // 2
            return self.run(letters[:middle]) + self.run(letters[middle:])
        if not once:
            self._box.end(plan)
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
