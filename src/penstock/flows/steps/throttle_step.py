"""The step `throttle`: not more messages in a second than another system can take."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from pydantic import Field

from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.stages import Bind


@step_kind
class ThrottleStep(FlowStep):
    """Waits, so that the messages of a process pass at a limited rate, on average.

    The messages of a batch go on together, after the time that they take at this rate. So a batch has by
    default those of a second (`max_messages_per_batch` of the flow).
    """

    name = "throttle"
    main_option = "rate"

    rate: float = Field(gt=0, le=1e9, description="Messages per second, in each process.")
    burst: int = Field(
        default=1, ge=1, description="How many messages may pass at once after a pause."
    )

    def most_of_a_batch(self) -> int:
        """Return how many messages pass in a second."""
        return max(self.burst, ceil(self.rate))

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what waits."""
        return _Throttle(self)


class _Throttle(BoundStep):
    """A bucket of `burst` messages that is filled at the rate."""

    def __init__(self, step: ThrottleStep) -> None:
        self._step = step
        self._filled_at: float | None = None
        self._left = float(step.burst)

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        now = run.systems.clock()
        if self._filled_at is not None:
            filled = self._left + (now - self._filled_at) * self._step.rate
            self._left = min(float(self._step.burst), filled)
        self._filled_at = now
        self._left -= len(messages)
        if self._left < 0:
            run.systems.wait(-self._left / self._step.rate)
        return Attempt(list(messages), [])
