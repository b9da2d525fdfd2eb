"""What a pipeline did to a table of files: a numbered file for each act, of which each can be made once.

An act counts from the moment in which its file is there: it names the files to bring in and those to
take out, with the mark and the ranges of the last write. Whoever finds the last act unfinished finishes
it, and finishing twice does no more than once. Two processes cannot make the same number, so that one
which was suspended, or does not know of the other, cannot add an act to what it did not see.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from penstock.errors import TerminalError, TransientError
from penstock.pipeline import CLAIMED, Batch, Delivery, LastWrite, Mark, is_repetition
from penstock.pipeline.storage import Folder
from penstock.sinks.fencing import claimed, covered_text, write_of
from penstock.sinks.files.file_table import HIDDEN

LOG = f"{HIDDEN}/log"
# More than one, so that a process which reads the newest finds it, and for people to look at.
_KEPT = 10
_TRIES = 100


@dataclass(frozen=True)
class Act:
    """One act on the table, and the last write of the pipeline after it."""

    last: LastWrite
    # Where a file was written to, and its name in the table.
    added: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)

    def as_text(self) -> str:
        """Return the act as its file has it."""
        write = {"mark": self.last.mark, **json.loads(covered_text(self.last))}
        return json.dumps({**write, "added": self.added, "removed": self.removed}, indent=1)

    @classmethod
    def from_text(cls, text: str) -> Act | None:
        """Read an act; None where a process died before its file was whole: it never counted."""
        try:
            given = json.loads(text)
        except ValueError:
            return None
        return cls(write_of(Mark(*given["mark"]), text), given["added"], given["removed"])


@dataclass(frozen=True)
class State:
    """The newest act, None before the first, and the number that the next one must have."""

    act: Act | None
    number: int

    @property
    def next(self) -> int:
        """Return the number of the next act."""
        return self.number + 1


class Journal:
    """The acts of one pipeline on one table."""

    def __init__(self, folder: Folder, pipeline: str) -> None:
        self.folder = folder
        self.pipeline = pipeline
        self._place = f"{LOG}/{pipeline}"
        # The newest act that this process knows to be finished.
        self._finished = 0

    def state(self) -> State:
        """Return the newest act as it is in the folder now."""
        for _ in range(_TRIES):
            numbers = self._numbers()
            texts = (self.folder.read(self._name(number)) for number in reversed(numbers))
            if act := next(filter(None, map(Act.from_text, filter(None, texts))), None):
                return State(act, numbers[-1])
            if not numbers or numbers == self._numbers():  # nothing, or nothing that was whole
                return State(None, max(numbers, default=0))
        raise self._busy()

    def settled(self) -> State:
        """Return the newest act, finished: by whom it was begun makes no difference."""
        state = self.state()
        if state.act and state.number != self._finished:
            self.finish(state.act)
        self._finished = state.number
        return state

    def has(self, batch: Batch, known: Act | None) -> bool:
        """Return whether the table has a batch already; raise FencedError where it must not have it."""
        if known is None or batch.delivery is Delivery.AT_LEAST_ONCE:
            return False  # a batch that is run again may have other rows: it replaces its own files
        return is_repetition(known.last.mark, batch.mark, self.pipeline)

    def claim(
        self,
        epoch: int,
        unmarked: Callable[[], LastWrite | None],
        continues: Container[int] = (),
    ) -> LastWrite | None:
        """Make an epoch the newest one; return the last write before it.

        `unmarked` returns what the names of files tell of a table that has no journal yet.
        """
        for _ in range(_TRIES):
            state = self.settled()
            known = state.act.last if state.act else unmarked()
            if self.add(state.next, Act(claimed(known, epoch, self.pipeline, continues))):
                return known
        raise self._busy()

    def write(self, batch: Batch, added: dict[str, str], removed: list[str]) -> None:
        """Move the files of a batch into the table, unless another process did so meanwhile."""
        act = Act(batch.as_write, added, removed)
        for _ in range(_TRIES):
            state = self.settled()
            if self.has(batch, state.act):
                return
            if self.add(state.next, act):
                self._carry_out(act, State(state.act, state.next))
                self._finished = state.next
                return
        raise self._busy()

    def add(self, number: int, act: Act) -> bool:
        """Write an act under its number; return whether it counts.

        One that is made after acts with greater numbers, because older ones were removed meanwhile, is
        not the newest: no one takes it into account.
        """
        if not self.folder.create(self._name(number), act.as_text()):
            return False
        numbers = self._numbers()
        for old in numbers[:-_KEPT]:
            self.folder.remove(self._name(old))
        return numbers[-1] == number

    def finish(self, act: Act) -> list[str]:
        """Add and remove the files of an act; return the files that are missing."""
        missing = [name for staged, name in act.added.items() if not self._bring(staged, name)]
        left = [name for name in act.removed if self.folder.exists(name)]
        if missing and left:
            raise TerminalError(
                f"{self.folder.uri}/{self._place} says that {missing[0]} takes the place of "
                f"{len(left)} files, and it is not there: bring it back, or, if those files are "
                "complete, remove the newest entry of that journal"
            )
        for name in left:
            self.folder.remove(name)
        for aside in {"/".join(staged.split("/")[:2]) for staged in act.added}:
            self.folder.remove(aside)
        return missing

    def _carry_out(self, act: Act, state: State) -> None:
        """Finish an act of this process; undo it where files vanished that were to be brought in."""
        missing = self.finish(act)
        if not missing or self.state().number != state.number:
            return
        nothing = LastWrite(Mark(act.last.mark.epoch, CLAIMED, 0))
        brought = [name for name in act.added.values() if name not in missing]
        undo = Act(state.act.last if state.act else nothing, removed=brought)
        if self.add(state.next, undo):
            self.finish(undo)
        raise TransientError(
            f"{len(missing)} files of a batch of {self.pipeline!r} vanished from "
            f"{self.folder.uri}/{HIDDEN} before they were in the table: the batch is run again"
        )

    def _bring(self, staged: str, name: str) -> bool:
        """Rename a file into the table, if no one has; return whether it exists there."""
        if self.folder.exists(staged):
            try:
                self.folder.move(staged, name)
                return True
            except TerminalError:
                pass  # another process did, or the store made a copy of it before it died
        return self.folder.exists(name)

    def _numbers(self) -> list[int]:
        names = (name.removesuffix(".json") for name in self.folder.names(self._place))
        return sorted(int(name) for name in names if name.isdigit())

    def _name(self, number: int) -> str:
        return f"{self._place}/{number:020}.json"

    def _busy(self) -> TransientError:
        return TransientError(
            f"other processes change {self.folder.uri} as {self.pipeline!r} all the time: "
            "the batch is run again"
        )
