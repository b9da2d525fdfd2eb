"""The step `split`: one message becomes many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pydantic import Field

from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import Expression
from penstock.flows.expressions.value_text import kind_of
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep, EachMessage
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.stages import Bind

MOST_PARTS = 1_000_000


@step_kind
class SplitStep(FlowStep):
    """Makes a message of each element of a list. `join` makes one of them again.

    A part has the attributes of its message and `split`: its `index` (the first is 0) and the `count`. A
    message with an empty list, or null, ends here. Split several times, a message of the trigger becomes
    at most a million parts.
    """

    name = "split"
    main_option = "items"

    items: Expression = Field(
        default=Expression("$"),
        description="The list; default: the payload.",
        validate_default=True,
    )
    most: int = Field(
        default=10_000, ge=1, le=1_000_000, description="The most parts; a message with more fails."
    )

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what splits."""
        evaluate = self.items.evaluator()

        def apply(message: Message) -> list[Message] | None:
            items = evaluate(message)
            if items is None or items == []:
                return None
            if not isinstance(items, list):
                raise Fault(
                    "CORE:SPLIT", f"{self.items.given}: takes a list, given {kind_of(items)}"
                )
            if len(items) > self.most:
                raise Fault("CORE:SPLIT", f"has {len(items)} elements; 'most' is {self.most}")
            count = len(items)
            return [
                message.part(n, item, {**message.attribute, "split": {"index": n, "count": count}})
                for n, item in enumerate(items)
            ]

        return _Split(apply)


class _Split(BoundStep):
    """Splits, and limits what one message of the trigger becomes, however often it was split before."""

    def __init__(self, apply: Callable[[Message], list[Message] | None]) -> None:
        self._apply = apply

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        made: Counter[int] = Counter()

        def apply(message: Message) -> list[Message] | None:
            parts = self._apply(message)
            made[message.place[0]] += len(parts or ())
            if made[message.place[0]] > MOST_PARTS:
                raise Fault(
                    "CORE:SPLIT",
                    f"the message of the trigger has become more than {MOST_PARTS} parts: publish them "
                    "to a topic before they are split again",
                )
            return parts

        return EachMessage(apply).attempt(messages, run)
