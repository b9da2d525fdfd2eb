"""The step `try`: steps whose failures other steps deal with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from pydantic import Field, field_validator

from penstock.flows.definition.step_model import FlowStep, Step, Steps, check_codes, step_kind
from penstock.flows.error_codes import names_code
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep
from penstock.flows.running.flow_run import Failure, FlowRun
from penstock.flows.running.stages import Bind, Block


@step_kind
class TryStep(FlowStep):
    """Runs steps; a message that fails in them goes through `catch`, then on, with the others.

    In `catch` the message is as the failed step was given it, and `error` has code and description.
    After it, the error is empty again. A failure in `catch` itself goes to what is around the step.
    `retry` and `on_error` belong to the steps in it; next to `try` they have no effect.
    """

    name = "try"

    steps: Steps = Field(min_length=1, description="The steps that may fail.")
    catch: Steps = Field(default=(), description="The steps for messages that failed.")
    codes: tuple[str, ...] = Field(
        default=("*",),
        min_length=1,
        description="Which errors are caught, as `HTTP:4*`; others go to what is around the step.",
    )

    @field_validator("codes")
    @classmethod
    def _codes_exist(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        check_codes(codes)
        return codes

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what runs both lists of steps."""
        steps = bind(self.steps, f"{path}.try.steps")
        return _Try(steps, bind(self.catch, f"{path}.try.catch"), self.codes)

    def blocks(self) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
        """Yield both lists of steps."""
        yield ".try.steps", "try", self.steps
        yield ".try.catch", "catch", self.catch

    def summary(self) -> str:
        """Return what is caught."""
        return f"catch {', '.join(self.codes)}"


class _Try(BoundStep):
    def __init__(self, steps: Block, catch: Block, codes: tuple[str, ...]) -> None:
        self._steps = steps
        self._catch = catch
        self._codes = codes

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        with run.catching() as failures:
            found = self._steps.run(messages, run)
        return self._settled(found, failures, run)

    def resume(self, path: str, messages: Sequence[Message], run: FlowRun) -> Attempt:
        if self._catch.leads_to(path):
            return Attempt(_clean(self._catch.resume(path, messages, run)), [])
        with run.catching() as failures:
            found = self._steps.resume(path, messages, run)
        return self._settled(found, failures, run)

    def _settled(self, found: list[Message], failures: list[Failure], run: FlowRun) -> Attempt:
        caught = [failure for failure in failures if self._catches(failure)]
        run.escalated += [failure for failure in failures if not self._catches(failure)]
        for failure in caught:
            run.recovered(failure.message)
        handled = self._catch.run([failure.with_error() for failure in caught], run)
        return Attempt(sorted([*found, *_clean(handled)], key=attrgetter("place")), [])

    def _catches(self, failure: Failure) -> bool:
        return any(names_code(pattern, failure.fault.code) for pattern in self._codes)


def _clean(messages: list[Message]) -> list[Message]:
    return [message.changed(error=None) for message in messages]
