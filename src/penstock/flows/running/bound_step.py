"""What runs a step: the messages of a batch in, the messages for the next step and the failures out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.message import Message

if TYPE_CHECKING:
    from penstock.flows.running.flow_run import FlowRun


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
    """A step that looks at one message at a time."""

    def __init__(self, apply: Callable[[Message], Message | list[Message] | None]) -> None:
        self._apply = apply

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        """Apply the function to each message."""
        found: list[Message] = []
        failed: list[tuple[Message, Fault]] = []
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
        return Attempt(found, failed)
