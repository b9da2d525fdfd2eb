"""A flow, ready to run: one function over a batch of messages, in tests and on the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.errors import ConfigError, nearest
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.step_model import Handler
from penstock.flows.message import Message
from penstock.flows.running.flow_run import (
    Failure,
    FlowRun,
    FlowStoppedError,
    FlowWaitsError,
    RunResult,
)
from penstock.flows.running.stages import Bind, Block, handled, resumed
from penstock.flows.running.systems import Systems


class CompiledFlow:
    """A flow with its steps bound. It is pickled as its definition; each process binds the steps itself.

    >>> from penstock.flows.testing import canned_systems
    >>> flow = Flow(name="t", trigger={"kafka": "a"}, steps=[{"map": "payload.n * 2"}])
    >>> result = CompiledFlow(flow).run([Message(b'{"n": 4}')], canned_systems())
    >>> [message.payload for message in result.results]
    [8]
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        bind = Bind(self._handle)
        self._handler: Block | None = None
        if isinstance(flow.on_error, Handler):
            self._handler = bind(flow.on_error.handler, "on_error.handler")
        self._block = bind(flow.steps, "steps")
        self._paths = {step.id or path: path for path, step in flow.all_steps()}
        self._paths |= {path: path for path, _ in flow.all_steps()}

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledFlow, (self.flow,)

    def run(
        self,
        messages: Sequence[Message],
        systems: Systems,
        *,
        from_step: str | None = None,
        traces: bool = False,
    ) -> RunResult:
        """Return what became of each message.

        `from_step` begins at a step, by its id or place, as a replay of dead letters does.

        Raises
        ------
        FlowStoppedError
            When a step with `on_error: stop` fails: no message of the batch is confirmed.
        FlowWaitsError
            When a system is unavailable and nothing says what to do then: the batch is run again.
        """
        run = FlowRun(messages, systems, traces=traces)
        placed = [_placed(message, number) for number, message in enumerate(messages)]
        try:
            run.finished(self._through(placed, from_step, run))
            self._settle(run)
        except BaseException:
            run.undo()
            raise
        return RunResult(run.outcomes, run.trace, run.undo)

    def _through(
        self, messages: list[Message], from_step: str | None, run: FlowRun
    ) -> list[Message]:
        if from_step is None:
            return self._block.run(messages, run)
        if from_step not in self._paths:
            raise ConfigError(
                f"there is no step {from_step!r}; {nearest(from_step, [*self._paths])}"
            )
        path = self._paths[from_step]
        if path.startswith("on_error.") and self._handler:
            resumed(messages, path, run, label="on_error", block=self._handler, then=self._then)
            return []
        return self._block.resume(path, messages, run)

    def _settle(self, run: FlowRun) -> None:
        """Deal with the failures that no step dealt with."""
        failures, run.escalated = run.escalated, []
        if not failures:
            return
        if self.flow.on_error == "stop":
            raise FlowStoppedError(failures[0])
        # A batch that is confirmed already is not run again: its messages would be lost.
        if self.flow.on_error is None and not self.flow.confirms_at_once:
            _wait_for_systems(failures)
        if self._handler is not None:
            self._handle(failures, run)
        else:
            for failure in failures:
                run.dead_letter(failure)

    def _handle(self, failures: list[Failure], run: FlowRun) -> None:
        assert self._handler is not None  # noqa: S101 - the definition is refused without one
        handled(failures, self._handler, self._then, run)

    @property
    def _then(self) -> str:
        handler = self.flow.on_error
        return handler.then if isinstance(handler, Handler) else "end"


def _wait_for_systems(failures: list[Failure]) -> None:
    """Raise where a system is unavailable: that is no fault of the messages."""
    away = [failure for failure in failures if failure.fault.code.endswith(":UNAVAILABLE")]
    if away:
        raise FlowWaitsError(away[0])


def _placed(message: Message, number: int) -> Message:
    if message.place == (number,) and message.parent is None:
        return message
    return Message(
        message.payload,
        message.attribute or {},
        message.variable or {},
        message.error,
        (number,),
        message.parent,
    )
