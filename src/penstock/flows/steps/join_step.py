"""The step `join`: many messages become one. A group never waits for another batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from penstock.flows.definition.model import refused
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.expressions import Expression
from penstock.flows.expressions.value_text import bytes_of, json_of
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.stages import Bind
from penstock.pipeline.values import Duration


@step_kind
class JoinStep(FlowStep):
    """Collects messages into one: the parts of a `split`, or those with the same key.

    Without `by`, `count`, `size` and `time`, the parts of each message that was split become that
    message again, with its own attributes and variables. With one of them, messages are collected until
    the count, the bytes or the time is reached.

    A group is made of messages of one batch: what is incomplete at its end does not wait for the next,
    because the messages in it are confirmed with the batch. `incomplete` says what becomes of it.
    """

    name = "join"

    by: Expression | None = Field(
        default=None, description="The key of the group; default: one group."
    )
    count: int | None = Field(
        default=None, ge=1, description="A group of this many messages is complete."
    )
    size: int | None = Field(
        default=None,
        ge=1,
        description="A group is complete when its payloads have this many bytes.",
    )
    time: Duration | None = Field(
        default=None,
        gt=0,
        description="A message this much later than the first of its group (by `at`) begins another one.",
    )
    at: Expression = Field(
        default=Expression("attribute.timestamp"),
        validate_default=True,
        description="The time of a message in milliseconds since 1970, for `time`.",
    )
    value: Expression = Field(
        default=Expression("$"),
        validate_default=True,
        description="What of each message is collected.",
    )
    incomplete: Literal["emit", "fail", "drop"] = Field(
        default="emit",
        description="What becomes of a group that is not complete: it goes on (`attribute.join.complete` "
        "is false), it fails, or it is dropped.",
    )

    @model_validator(mode="after")
    def _collects_by_something(self) -> Self:
        if self.by is not None and not self.limits:
            raise refused(
                "'by' says which messages belong together; say when a group is complete, too: "
                "'count', 'size' or 'time'"
            )
        return self

    @property
    def limits(self) -> bool:
        """Return whether groups end by count, size or time."""
        return not self.count is self.size is self.time is None

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what collects."""
        return _Join(self)

    def unused(self) -> dict[str, str]:
        """Return what is for groups by time alone."""
        return self._unless(self.time is not None, "it is for 'time'", "at")

    def summary(self) -> str:
        """Return by what messages are collected."""
        given = {name: getattr(self, name) for name in ("count", "size", "time")}
        limits = ", ".join(f"{name} {value:g}" for name, value in given.items() if value)
        return f"by {self.by.given}, {limits}" if self.by else limits or "the parts of a split"


@dataclass
class _Group:
    messages: list[Message] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    size: int = 0
    began: float = 0.0
    is_complete: bool = False


class _Join(BoundStep):
    def __init__(self, step: JoinStep) -> None:
        self._step = step
        self._value = step.value.evaluator()
        self._by = step.by.evaluator() if step.by else None
        self._at = step.at.evaluator()

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        closed: list[_Group] = []
        open_groups: dict[Any, _Group] = {}
        failed: list[tuple[Message, Fault]] = []
        for message in messages:
            try:
                self._add(message, open_groups, closed)
            except Exception as error:  # a key or a value that this message does not have
                failed.append((message, fault_of(error)))
        closed += open_groups.values()
        found: list[Message] = []
        for group in sorted(closed, key=lambda each: each.messages[0].place):
            self._finish(group, run, found, failed)
        return Attempt(found, failed)

    def _add(self, message: Message, groups: dict[Any, _Group], closed: list[_Group]) -> None:
        value = self._value(message)
        size = len(bytes_of(value) or b"") if self._step.size else 0
        at = self._time(message) if self._step.time else 0.0
        key = self._key(message)
        group = groups.get(key)
        if group and self._step.time and not 0 <= at - group.began < self._step.time * 1000:
            group.is_complete = True
            closed.append(groups.pop(key))
            group = None
        if group is None:
            group = groups[key] = _Group(began=at)
        group.messages.append(message)
        group.values.append(value)
        group.size += size
        if self._is_full(group):
            group.is_complete = True
            closed.append(groups.pop(key))

    def _key(self, message: Message) -> Any:
        if self._step.limits:
            return json_of(self._by(message)) if self._by else ""
        if message.parent is None:
            raise Fault(
                "CORE:JOIN", "the message is not a part of a split; give 'count', 'size' or 'time'"
            )
        return message.parent.place

    def _time(self, message: Message) -> float:
        at = self._at(message)
        if not isinstance(at, int | float):
            raise Fault(
                "CORE:JOIN", f"{self._step.at.given}: is not a number of milliseconds; give 'at'"
            )
        return float(at)

    def _is_full(self, group: _Group) -> bool:
        step = self._step
        return bool(
            (step.count and len(group.messages) >= step.count)
            or (step.size and group.size >= step.size)
        )

    def _finish(
        self, group: _Group, run: FlowRun, found: list[Message], failed: list[tuple[Message, Fault]]
    ) -> None:
        first, step = group.messages[0], self._step
        base = first if step.limits else first.parent or first
        complete = group.is_complete if step.limits else not run.failed_parts[base.place]
        run.joined(base, group.messages)
        join = {"count": len(group.values), "complete": complete}
        made = base.changed(
            payload=group.values, attribute={**base.attribute, "join": join}, error=None
        )
        if complete or step.incomplete == "emit":
            found.append(made)
        elif step.incomplete == "drop":
            for message in group.messages:
                run.ended(message, "filtered")
        else:
            reason = f"the group has {len(group.values)} messages and is not complete"
            failed.append((made, Fault("CORE:JOIN", reason)))
