"""The step `branch`: each message takes the first way whose condition is true."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from pydantic import Field

from penstock.flows.definition.model import FlowModel
from penstock.flows.definition.step_model import FlowStep, Step, Steps, step_kind
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.expressions import Expression
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.stages import Bind, Block
from penstock.flows.steps.shaping import condition


class When(FlowModel):
    """One way."""

    if_: Expression = Field(alias="if", description="The condition.")
    steps: Steps = Field(default=(), description="The steps of this way.")


@step_kind
class BranchStep(FlowStep):
    """Sends each message down the first way whose condition is true; all ways meet after it.

    Its own `retry` and `on_error` are for the conditions; the steps of a way have their own.
    """

    name = "branch"

    when: tuple[When, ...] = Field(
        min_length=1,
        description="The ways, in their order: each has `if`, its condition, and `steps`.",
    )
    otherwise: Steps = Field(
        default=(), description="The steps for messages that no condition takes; default: none."
    )

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what sends messages down the ways."""
        blocks = [bind(steps, where) for where, _, steps in self._ways(path)]
        return _Branch([condition(way.if_) for way in self.when], blocks)

    def _ways(self, path: str) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
        for number, way in enumerate(self.when):
            yield f"{path}.branch.when[{number}].steps", str(way.if_.given), way.steps
        yield f"{path}.branch.otherwise", "otherwise", self.otherwise

    def blocks(self) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
        """Yield the ways."""
        yield from self._ways("")


class _Branch(BoundStep):
    def __init__(
        self, conditions: Sequence[Callable[[Message], bool]], blocks: Sequence[Block]
    ) -> None:
        self._conditions = conditions
        self._blocks = blocks

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        ways: list[list[Message]] = [[] for _ in self._blocks]
        failed: list[tuple[Message, Fault]] = []
        for message in messages:
            try:
                ways[self._way(message)].append(message)
            except Exception as error:  # the condition has no value for this message
                failed.append((message, fault_of(error)))
        found = [
            message
            for block, given in zip(self._blocks, ways, strict=True)
            for message in block.run(given, run)
        ]
        return Attempt(sorted(found, key=attrgetter("place")), failed)

    def _way(self, message: Message) -> int:
        taken = (n for n, passes in enumerate(self._conditions) if passes(message))
        return next(taken, len(self._conditions))

    def resume(self, path: str, messages: Sequence[Message], run: FlowRun) -> Attempt:
        for block in self._blocks:
            if block.leads_to(path):
                return Attempt(block.resume(path, messages, run), [])
        raise KeyError(path)
