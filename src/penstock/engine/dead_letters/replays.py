"""Replays as they are written down among the letters: which were begun, whose they are, and how they end.

What a replay does with its letters is the business of a subclass: rows for a sink, or messages of a flow.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from penstock.config.logs import event_logger
from penstock.engine.dead_letters.dead_letter_store import DeadLetterStore
from penstock.engine.dead_letters.letter import DeadLetter
from penstock.engine.dead_letters.letter_log import Plan
from penstock.engine.session import spark_session
from penstock.engine.state_dir import state_folder
from penstock.errors import ConfigError, PenstockError
from penstock.pipeline import Pipeline
from penstock.pipeline.disk import Disk
from penstock.pipeline.storage import Folder, is_uri, on_this_disk

log = event_logger(__name__)


@dataclass(frozen=True)
class Replayed:
    """What became of the letters of a replay."""

    letters: int = 0
    rows: int = 0
    failed_again: int = 0
    # Letters that another replay or a drop took before this one could.
    taken: int = 0
    # Letters of interrupted replays that were finished first.
    finished: int = 0
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


def refuse_unreadable(letters: Sequence[DeadLetter]) -> None:
    """Raise where a letter is none that can be read."""
    if bad := next((letter for letter in letters if not letter.is_readable), None):
        raise ConfigError(
            f"the dead letter {bad.id!r} cannot be replayed, because it cannot be read ({bad.error}): "
            "choose others, or drop it"
        )


class Replays(ABC):
    """The replays of one call, one after the other."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._log = DeadLetterStore(pipeline)
        self._owner = _owner(pipeline)

    @abstractmethod
    def _run(self, plan: Plan, letters: list[DeadLetter]) -> Replayed:
        """Replay the letters of a plan, and write down that they are done."""

    def finish(self, take_over: bool) -> tuple[Replayed, PenstockError | None]:
        """Finish what was begun; return what was finished, and why one could not be.

        The lock says that no process runs a replay of this state folder now.
        """
        elsewhere: set[str] = set()
        finished = 0
        failed: PenstockError | None = None
        for plan in self._log.unfinished():
            if plan.owner not in ("", self._owner) and not take_over:
                elsewhere.add(plan.owner)
            elif not plan.begun:
                self._log.release(plan)
            elif error := self._finish(plan):
                failed = error
            else:
                finished += len(plan.letters.keys() - plan.replayed)
        return Replayed(finished=finished, elsewhere=tuple(sorted(elsewhere))), failed

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
        if (plan := self._log.claim(letters, self._owner)) is None:
            return Replayed(taken=len(letters))
        mine = [letter for letter in letters if letter.identity in plan.letters]
        return self._run(plan, mine) + Replayed(taken=len(letters) - len(mine))


def _owner(pipeline: Pipeline) -> str:
    """Return the name of a state folder, by which its replays are known among the letters."""
    place = on_this_disk(f"{state_folder(pipeline)}/replays")
    if is_uri(place):
        folder = Folder(spark_session(pipeline.session_options), place)
        owner = folder.read("owner") or _new_owner()
        folder.write("owner", owner)
        return owner
    disk, file = Disk(), f"{place}/owner"  # without Spark
    owner = disk.read(file) or _new_owner()
    disk.write(file, owner)
    return owner


def _new_owner() -> str:
    return f"{socket.gethostname()}-{uuid4().hex[:12]}"
