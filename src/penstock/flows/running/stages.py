"""A definition as stages: each gets the messages of a batch, tries again, and deals with what failed.

All messages go through one step before the next begins. A publish operation sends the whole batch and
waits once for its confirmations, and no part of a split message is still on its way to their join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

from penstock.flows.definition.step_model import Handler, Step
from penstock.flows.error_codes import Fault, fault_of, may_pass, names_code
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep
from penstock.flows.running.flow_run import Failure, FlowRun, FlowStoppedError

_by_place = attrgetter("place")
Failed = list[tuple[Message, Fault]]


class Stage:
    """A step with what happens around it."""

    def __init__(self, step: Step, path: str, bind: Bind) -> None:
        self.path = path
        self.label = step.id or path
        self.kind = step.kind.name
        self._retry = step.retry
        self._on_error = step.on_error
        self._bound = step.kind.bound(bind, path)
        handler = step.on_error
        self._handler = (
            bind(handler.handler, f"{path}.on_error.handler")
            if isinstance(handler, Handler)
            else None
        )
        self._flow_handler = bind.flow_handler

    def leads_to(self, target: str) -> bool:
        """Return whether a step, by its id or place, is this one or one in it."""
        return target in (self.label, self.path) or target.startswith(f"{self.path}.")

    def run(self, messages: Sequence[Message], run: FlowRun) -> list[Message]:
        """Return the messages for the next stage."""
        if not messages:
            return []
        run.passed(self.label, messages)
        return self._settled(messages, self._attempted(messages, run), run)

    def resume(self, target: str, messages: Sequence[Message], run: FlowRun) -> list[Message]:
        """Run from a step in this one on."""
        if target in (self.label, self.path):
            return self.run(messages, run)
        handler = self._on_error
        if self._handler and isinstance(handler, Handler) and self._is_handling(target):
            return resumed(
                messages, target, run, label=self.label, block=self._handler, then=handler.then
            )
        return self._settled(messages, self._bound.resume(target, messages, run), run)

    def _is_handling(self, target: str) -> bool:
        return target.startswith(f"{self.path}.on_error.")

    def _settled(
        self, messages: Sequence[Message], attempt: Attempt, run: FlowRun
    ) -> list[Message]:
        found, failed = attempt
        if run.traces:
            errors = {message.place: fault.document for message, fault in failed}
            run.note(self.label, self.kind, messages, found, errors)
        if not failed:
            return found
        return sorted([*found, *self._handled(failed, run)], key=_by_place)

    def _attempted(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        found, failed = self._tried(messages, run)
        if not failed or self._retry is None:
            return Attempt(found, failed)
        for pause in self._retry.waits():
            again = [each for each in failed if self._may_retry(each[1])]
            if not again:
                break
            final = [each for each in failed if not self._may_retry(each[1])]
            run.systems.wait(max(pause, *(fault.retry_after for _, fault in again)))
            more, failed = self._tried([message for message, _ in again], run)
            found, failed = [*found, *more], [*final, *failed]
        return Attempt(sorted(found, key=_by_place), failed)

    def _may_retry(self, fault: Fault) -> bool:
        codes = self._retry.codes if self._retry else ()
        if not codes:
            return may_pass(fault.code)
        return any(names_code(pattern, fault.code) for pattern in codes)

    def _tried(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        try:
            return self._bound.attempt(messages, run)
        except FlowStoppedError:
            raise
        except Exception as error:  # a system that is away fails for every message
            fault = fault_of(error)
            return Attempt([], [(message, fault) for message in messages])

    def _handled(self, failed: Failed, run: FlowRun) -> list[Message]:
        """Return those messages that go on."""
        failures = [Failure(message, fault, self.label) for message, fault in failed]
        if self._on_error == "stop":
            raise FlowStoppedError(failures[0])
        if self._on_error == "continue":
            return [failure.with_error() for failure in failures]
        if self._on_error == "dead-letter":
            for failure in failures:
                run.dead_letter(failure)
        elif isinstance(self._on_error, Handler) and self._handler:
            return handled(failures, self._handler, self._on_error.then, run)
        elif self._on_error == "handler":
            self._flow_handler(failures, run)
        else:
            run.escalate(failures)
        return []


class Block:
    """Stages one after the other."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages

    def run(self, messages: Sequence[Message], run: FlowRun) -> list[Message]:
        """Return the messages that come to the end of the block."""
        return self._from(0, list(messages), run)

    def leads_to(self, target: str) -> bool:
        """Return whether a step is in this block."""
        return any(stage.leads_to(target) for stage in self._stages)

    def resume(self, target: str, messages: Sequence[Message], run: FlowRun) -> list[Message]:
        """Run from a step on; KeyError where the block has none of this id or place."""
        for number, stage in enumerate(self._stages):
            if stage.leads_to(target):
                return self._from(number + 1, stage.resume(target, messages, run), run)
        raise KeyError(target)

    def _from(self, number: int, messages: list[Message], run: FlowRun) -> list[Message]:
        for stage in self._stages[number:]:
            if not messages:
                break
            messages = stage.run(messages, run)
        return messages


FlowHandler = Callable[[list[Failure], FlowRun], None]


class Bind:
    """Binds the steps of a definition, those in other steps included."""

    def __init__(self, flow_handler: FlowHandler) -> None:
        self.flow_handler = flow_handler

    def __call__(self, steps: Sequence[Step], path: str) -> Block:
        """Return the block of a list of steps at a place of the definition."""
        return Block([Stage(step, f"{path}[{n}]", self) for n, step in enumerate(steps)])


def handled(
    failures: list[Failure], block: Block, then: str, run: FlowRun, target: str | None = None
) -> list[Message]:
    """Run a handler for messages that failed, from a step in it on; return those that go on.

    A message for which the handler fails, too, is a dead letter with its first error.
    """
    before = {failure.message.place: failure for failure in failures}
    given = [failure.with_error() for failure in failures]
    with run.catching() as caught:
        ended = block.run(given, run) if target is None else block.resume(target, given, run)
    letters = {each.message.place: each for each in (_origin(one, before) for one in caught)}
    if then == "dead-letter":
        for message in ended:
            letters |= {each.message.place: each for each in _origins(message, before, run)}
    for failure in letters.values():
        run.dead_letter(failure)
    if then == "continue":
        return [message.changed(error=None) for message in ended]
    for message in ended:
        if then == "end":
            run.lost_part(message)
        run.ended(message, "handled")
    return []


def resumed(
    messages: Sequence[Message],
    target: str,
    run: FlowRun,
    *,
    label: str,
    block: Block,
    then: str,
) -> list[Message]:
    """Run a handler from a step in it on, for messages with the error of the step `label`."""
    failures = [Failure(message, _fault_in(message), label) for message in messages]
    return handled(failures, block, then, run, target)


def _fault_in(message: Message) -> Fault:
    error = message.error or {}
    return Fault(str(error.get("Code", "CORE:RUNTIME")), str(error.get("Description", "")))


def _origin(failure: Failure, before: Mapping[tuple[int, ...], Failure]) -> Failure:
    return _at(failure.message, before) or failure


def _origins(
    message: Message, before: Mapping[tuple[int, ...], Failure], run: FlowRun
) -> list[Failure]:
    """Return the failures of which a handler made a message: several, where it joined them."""
    numbers = run.made_of(message)
    if len(numbers) > 1:
        return [each for place, each in before.items() if place[0] in numbers]
    found = _at(message, before)
    # A join made it of parts of one message that was split before.
    return [found] if found else [each for place, each in before.items() if place[0] in numbers]


def _at(message: Message, before: Mapping[tuple[int, ...], Failure]) -> Failure | None:
    place = message.place
    lengths = range(len(place), 0, -1)
    return next((before[place[:n]] for n in lengths if place[:n] in before), None)


__all__ = ["Bind", "Block", "BoundStep", "Stage", "handled"]
