"""The step `dedupe`: a message whose key was seen before ends here."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from pydantic import Field

from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.expressions import Expression
from penstock.flows.expressions.value_text import json_of
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.stages import Bind
from penstock.pipeline.values import Duration


@step_kind
class DedupeStep(FlowStep):
    """Lets the first message of each key pass. A message without a key (null) always passes.

    Keys are remembered in the memory of the process: a restart forgets them, and a batch that is run
    again because a system was unavailable forgets its own. Where that is not enough, the step
    `deduplicate` of a pipeline keeps them in its checkpoint.
    """

    name = "dedupe"
    main_option = "key"

    key: Expression = Field(description="What tells messages apart.")
    within: Duration = Field(default=3600.0, gt=0, description="For how long a key is remembered.")
    most: int = Field(
        default=100_000,
        ge=1,
        le=10_000_000,
        description="The most keys; the oldest is forgotten first.",
    )

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what remembers keys."""
        return _Dedupe(self)


class _Dedupe(BoundStep):
    def __init__(self, step: DedupeStep) -> None:
        self._step = step
        self._key = step.key.evaluator()
        self._seen: dict[bytes, float] = {}

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        found: list[Message] = []
        failed: list[tuple[Message, Fault]] = []
        added: list[bytes] = []
        run.on_undo(lambda: self._forget(added))
        now = run.systems.clock()
        for message in messages:
            try:
                is_new = self._is_new(message, now, added)
            except Exception as error:  # the key has no value for this message
                failed.append((message, fault_of(error)))
                continue
            if is_new:
                found.append(message)
            else:
                run.ended(message, "filtered")
        return Attempt(found, failed)

    def _forget(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._seen.pop(key, None)

    def _is_new(self, message: Message, now: float, added: list[bytes]) -> bool:
        value = self._key(message)
        if value is None:
            return True
        # A digest: keys of any length take the same memory.
        key = blake2b(json_of(value).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        last = self._seen.get(key)
        if last is not None and now - last < self._step.within:
            return False
        self._seen.pop(key, None)
        self._seen[key] = now
        added.append(key)
        if len(self._seen) > self._step.most:
            self._seen.pop(next(iter(self._seen)))
        return True
