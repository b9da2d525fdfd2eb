"""What runs a step: the messages of a batch in, the messages for the next step and the failures out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.message import Message, Messages

if TYPE_CHECKING:
    from penstock.flows.running.flow_run import FlowRun

_PIECE = 512


class Attempt(NamedTuple):
    """What came of messages: those for the next step, and those for which the step failed."""

    messages: list[Message]
    failed: list[tuple[Message, Fault]]


class BoundStep(ABC):
    """A step in a process; it may keep connections and caches from batch to batch."""

    @abstractmethod
    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        """Run the step for the messages; raise only where no message could be blamed."""

    def resume(self, path: str, messages: Sequence[Message], run: FlowRun) -> Attempt:
        """Run what follows a step in it, and that step; only steps with steps in them can."""
        raise KeyError(path)


class EachMessage(BoundStep):
    """A step that looks at one message at a time.

    `apply_all` is what `apply` is for some messages together, where that is quicker. Where it raises,
    `apply` says what becomes of each message, so that an error belongs to its own message.
    """

    def __init__(
        self,
        apply: Callable[[Message], Message | list[Message] | None],
        apply_all: Callable[[Messages], Sequence[Message | None]] | None = None,
    ) -> None:
        self._apply = apply
        self._apply_all = apply_all

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        """Apply the function to each message."""
        found: list[Message] = []
        failed: list[tuple[Message, Fault]] = []
        for some in pieces(messages) if self._apply_all else (messages,):
            if not self._together(some, found, run):
                self._one_by_one(some, found, failed, run)
        return Attempt(found, failed)

    def _together(self, messages: Sequence[Message], found: list[Message], run: FlowRun) -> bool:
        """Return whether the messages could be looked at together."""
        if self._apply_all is None:
            return False
        try:
            made = self._apply_all(Messages(messages))
        except Exception:
            return False
        passed = [each for each in made if each is not None]
        if len(passed) < len(made):
            for message, each in zip(messages, made, strict=True):
                if each is None:
                    run.ended(message, "filtered")
        found += passed
        return True

    def _one_by_one(
        self,
        messages: Sequence[Message],
        found: list[Message],
        failed: list[tuple[Message, Fault]],
        run: FlowRun,
    ) -> None:
        apply = self._apply
        for message in messages:
            try:
                made = apply(message)
            except Exception as error:  # whatever a message causes belongs to this message
                failed.append((message, fault_of(error)))
                continue
            if made is None:
                run.ended(message, "filtered")
            elif isinstance(made, list):
                found += made
            else:
                found.append(made)


def pieces(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """Yield the messages in pieces: one that fails makes those of its piece slow, not the others."""
    for at in range(0, len(messages), _PIECE):
        yield messages[at : at + _PIECE]
