"""One run of a flow over the messages of a batch: what happened to each, the dead letters, the trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from msgspec import Struct

from penstock.errors import TerminalError, TransientError
from penstock.flows.error_codes import Fault
from penstock.flows.expressions.value_text import time_text
from penstock.flows.message import Message
from penstock.flows.running.systems import Systems


@dataclass(frozen=True)
class Failure:
    """A message for which a step failed."""

    message: Message
    fault: Fault
    step: str

    def with_error(self) -> Message:
        """Return the message with its error, as handlers see it."""
        return self.message.changed(error=self.fault.document)


@dataclass(frozen=True)
class DeadLetter:
    """A message that failed for good: it can be fixed, and replayed from the step that failed."""

    original: Message
    # The message as the step that failed was given it.
    message: Message
    error: dict[str, str]
    # The failed step's id, or its place: `CompiledFlow.run(..., from_step=...)` takes both.
    from_step: str
    # The steps that the message went through before, in their order.
    trail: tuple[str, ...] = ()
    # The numbers of the messages of the batch that a step `join` made this one of.
    joined: frozenset[int] = frozenset()


@dataclass(frozen=True)
class TraceEntry:
    """What one step did to one message."""

    step: str
    kind: str
    before: Message
    after: tuple[Message, ...]
    error: dict[str, str] | None = None


class Outcome(Struct):
    """What became of one message: `done`, `filtered`, `joined`, `handled` or `failed`."""

    message: Message
    status: str = "done"
    results: list[Message] = []
    dead_letters: list[DeadLetter] = []
    # The message where it ended before the end of the flow: filtered, or at the end of a handler.
    last: Message | None = None


class FlowStoppedError(TerminalError):
    """A step with `on_error: stop` failed: the flow ends, and the batch is not confirmed."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(f"the flow stops at {failure.step}: {failure.fault}")


class FlowWaitsError(TransientError):
    """A system is unavailable: the batch is not confirmed, and is run again until it is back."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(f"the flow waits at {failure.step}: {failure.fault}")


class _Passage:
    """The messages that went into a step."""

    def __init__(self, step: str, messages: Sequence[Message]) -> None:
        self.step = step
        self._messages = messages

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Return from which messages of the batch they were made."""
        return frozenset(message.place[0] for message in self._messages)


class FlowRun:
    """Collects what happens while a batch goes through the stages."""

    def __init__(self, messages: Sequence[Message], systems: Systems, *, traces: bool) -> None:
        self.systems = systems
        self.traces = traces
        self.trace: list[TraceEntry] = []
        self.outcomes = [Outcome(message) for message in messages]
        self.escalated: list[Failure] = []
        # How many parts of a split message failed, by the place of that message.
        self.failed_parts: Counter[tuple[int, ...]] = Counter()
        # Of which messages of the batch those are made that a step `join` made, by their numbers.
        self._joined: dict[int, frozenset[int]] = {}
        # For traces: the message that a step `join` made of another one, by their places.
        self._joined_into: dict[tuple[int, ...], tuple[int, ...]] = {}
        # Which messages went into which step: looked at only where one fails.
        self._passages: list[_Passage] = []
        # What steps must forget where the batch is run again.
        self._undo: list[Callable[[], None]] = []

    def on_undo(self, forget: Callable[[], None]) -> None:
        """Call this where the batch is not confirmed: its messages come again, and are new then."""
        self._undo.append(forget)

    def undo(self) -> None:
        """Let the steps forget the messages of this run."""
        while self._undo:
            self._undo.pop()()

    def outcome(self, message: Message) -> Outcome:
        """Return the outcome of the message of the batch from which this one was made."""
        return self.outcomes[message.place[0]]

    def ended(self, message: Message, status: str) -> None:
        """Note that a message goes no further."""
        outcome = self.outcome(message)
        if outcome.status == "done":
            outcome.status = status
            outcome.last = message

    def finished(self, messages: Sequence[Message]) -> None:
        """Note the messages that came to the end of the flow."""
        for message in messages:
            outcome = self.outcome(message)
            outcome.results.append(message)
            if outcome.status != "failed":
                outcome.status = "done"

    def passed(self, step: str, messages: Sequence[Message]) -> None:
        """Note that messages went into a step."""
        self._passages.append(_Passage(step, messages))

    def joined(self, into: Message, messages: Sequence[Message]) -> None:
        """Note that one message was made of these."""
        number = into.place[0]
        if self.traces:
            self._joined_into |= {message.place: into.place for message in messages}
        for message in messages:
            other = message.place[0]
            if other != number:
                self.ended(message, "joined")
            of = self._joined.get(other, frozenset((other,)))
            self._joined[number] = self._joined.get(number, frozenset()) | of

    def made_of(self, message: Message) -> frozenset[int]:
        """Return the numbers of the messages of the batch of which a message was made."""
        number = message.place[0]
        return self._joined.get(number, frozenset((number,)))

    def lost_part(self, message: Message) -> None:
        """Note that a part of a split message will not come to its `join`."""
        parent = message.parent
        while parent is not None:
            self.failed_parts[parent.place] += 1
            parent = parent.parent

    def escalate(self, failures: Sequence[Failure]) -> None:
        """Leave failures to what is around the step: a `try`, the flow."""
        self.escalated += failures
        for failure in failures:
            self.lost_part(failure.message)

    def recovered(self, message: Message) -> None:
        """Note that a part of a split message that failed goes on, after a `catch`."""
        parent = message.parent
        while parent is not None:
            self.failed_parts[parent.place] -= 1
            parent = parent.parent

    def dead_letter(self, failure: Failure) -> None:
        """Write a message to the dead letters."""
        message = failure.message
        outcome = self.outcome(message)
        outcome.status = "failed"
        self.lost_part(message)
        trail = tuple(each.step for each in self._passages if message.place[0] in each.numbers)
        joined = self._joined.get(message.place[0], frozenset())
        error = failure.fault.document
        letter = DeadLetter(outcome.message, message, error, failure.step, trail, joined)
        outcome.dead_letters.append(letter)

    @contextmanager
    def catching(self) -> Iterator[list[Failure]]:
        """Collect the failures that no step inside deals with."""
        outer, self.escalated = self.escalated, []
        try:
            yield self.escalated
        finally:
            self.escalated = outer

    def note(
        self,
        step: str,
        kind: str,
        before: Sequence[Message],
        after: Sequence[Message],
        errors: dict[tuple[int, ...], dict[str, str]],
    ) -> None:
        """Add a step to the trace, for each message that went into it."""
        for message in before:
            place = message.place
            joined = self._joined_into.get(place)
            made = tuple(
                each for each in after if each.place[: len(place)] == place or each.place == joined
            )
            entry = TraceEntry(step, kind, message, made, errors.get(place))
            self.trace.append(entry)


@dataclass(frozen=True)
class RunResult:
    """The outcomes of a batch, in the order of its messages."""

    outcomes: list[Outcome]
    trace: list[TraceEntry] = field(default_factory=list)
    # Lets the steps forget its messages, for a batch that fails after the steps.
    undo: Callable[[], None] = field(default=lambda: None, compare=False)

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters of all messages."""
        return [letter for outcome in self.outcomes for letter in outcome.dead_letters]

    @property
    def results(self) -> list[Message]:
        """Return the messages that came to the end."""
        return [message for outcome in self.outcomes for message in outcome.results]

    def statuses(self) -> dict[str, int]:
        """Return how many messages had which outcome."""
        return dict(Counter(outcome.status for outcome in self.outcomes))


def shown(value: Any) -> Any:
    """Return a value for traces and reports: bytes as text, or in base64 where they are none."""
    from penstock.formats.json_text import text_or_base64  # noqa: PLC0415 - only for people

    if isinstance(value, bytes):
        return text_or_base64(value)
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, dict):
        return {str(key): shown(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
