"""The step `split`: one message becomes many."""

from __future__ import annotations

from pydantic import Field

from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import Expression
from penstock.flows.expressions.value_text import kind_of
from penstock.flows.message import Message
from penstock.flows.running.bound_step import BoundStep, EachMessage
from penstock.flows.running.stages import Bind


@step_kind
class SplitStep(FlowStep):
    """Makes a message of each element of a list. `join` makes one of them again.

    A part has the attributes of its message and `split`: its `index` (the first is 0) and the `count`. A
    message with an empty list, or null, ends here.
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

        return EachMessage(apply)
