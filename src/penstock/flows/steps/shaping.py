"""The steps `set`, `map` and `filter`: expressions over one message."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator
from typing_extensions import Self

from penstock.flows.definition.model import refused
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.expressions import Expression, ExpressionError, Template
from penstock.flows.expressions.columns import truths
from penstock.flows.expressions.operators import truth
from penstock.flows.expressions.scope import Column
from penstock.flows.message import Message, Messages
from penstock.flows.running.bound_step import BoundStep, EachMessage
from penstock.flows.running.stages import Bind


@step_kind
class SetStep(FlowStep):
    """Sets the payload, attributes and variables; all expressions see the message as it was before."""

    name = "set"

    payload: Expression | None = Field(default=None, description="The new payload.")
    attribute: dict[str, Expression] = Field(
        default_factory=dict, description="Attributes to set, each by an expression."
    )
    variable: dict[str, Expression] = Field(
        default_factory=dict, description="Variables to set, each by an expression."
    )

    @model_validator(mode="after")
    def _sets_something(self) -> Self:
        if not self.model_fields_set:
            raise refused("sets nothing; give 'payload', 'attribute' or 'variable'")
        return self

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what sets them."""
        payload = self.payload.evaluator() if self.payload else None
        parts = [
            (part, [(name, each.evaluator()) for name, each in getattr(self, part).items()])
            for part in ("attribute", "variable")
            if getattr(self, part)
        ]

        def apply(message: Message) -> Message:
            changes: dict[str, Any] = {} if payload is None else {"payload": payload(message)}
            for part, members in parts:
                values = {name: evaluate(message) for name, evaluate in members}
                changes[part] = {**getattr(message, part), **values}
            return message.changed(**changes)

        columns = [] if self.payload is None else [("payload", self.payload.column())]
        parts_of_all = [
            (part, [*members], [each.column() for each in members.values()])
            for part, members in (("attribute", self.attribute), ("variable", self.variable))
            if members
        ]

        def apply_all(messages: Messages) -> list[Message]:
            changes = {part: column(messages) for part, column in columns}
            for part, names, each in parts_of_all:
                rows = zip(*(column(messages) for column in each), strict=True)
                changes[part] = [
                    {**getattr(message, part), **dict(zip(names, row, strict=True))}
                    for message, row in zip(messages, rows, strict=True)
                ]
            return [
                message.changed(**dict(zip(changes, row, strict=True)))
                for message, row in zip(messages, zip(*changes.values(), strict=True), strict=True)
            ]

        return EachMessage(apply, apply_all)

    def summary(self) -> str:
        """Return what is set."""
        names = [
            f"{part}.{name}" for part in ("attribute", "variable") for name in getattr(self, part)
        ]
        return ", ".join([*(["payload"] if self.payload else []), *names])


@step_kind
class MapStep(FlowStep):
    """Makes the payload: a value of expressions, or a text with expressions in it."""

    name = "map"
    main_option = "value"

    value: Expression | None = Field(
        default=None,
        description="The payload: an expression (a JSON path as `$.order.lines` is one), or a mapping of "
        "expressions that becomes an object.",
        json_schema_extra={"takes_mapping": True},
    )
    template: Template | None = Field(
        default=None, description="The payload as a text with `${...}` in it."
    )

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.value is None) == (self.template is None):
            raise refused("give 'value' or 'template', and not both")
        return self

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what makes the payload."""
        given = self.value or self.template
        assert given is not None  # noqa: S101 - one of both is given
        evaluate, column = given.evaluator(), given.column()

        def apply_all(messages: Messages) -> list[Message]:
            made = column(messages)
            return [m.with_payload(value) for m, value in zip(messages, made, strict=True)]

        return EachMessage(lambda message: message.with_payload(evaluate(message)), apply_all)

    def summary(self) -> str:
        """Return the expression or the text."""
        return str(self.value.given if self.value else self.template and self.template.given)


@step_kind
class FilterStep(FlowStep):
    """Lets the messages pass for which a condition is true; the others end here, without an error."""

    name = "filter"
    main_option = "condition"

    condition: Expression = Field(description="The condition; null counts as false.")

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what filters."""
        passes, column = condition(self.condition), conditions(self.condition)

        def apply_all(messages: Messages) -> list[Message | None]:
            passed = column(messages)
            return [m if is_true else None for m, is_true in zip(messages, passed, strict=True)]

        return EachMessage(lambda message: message if passes(message) else None, apply_all)


def condition(expression: Expression) -> Any:
    """Return a condition as a function of a message; a value that is no condition is refused."""
    evaluate, given = expression.evaluator(), str(expression.given)[:80]

    def passes(message: Message) -> bool:
        value = evaluate(message)
        if value is True or value is False:
            return value
        try:
            return bool(truth(value, "a condition"))
        except ExpressionError as error:
            raise ExpressionError(f"{given}: {error}") from None

    return passes


def conditions(expression: Expression) -> Column:
    """Return a condition as a function of many messages; true and false, and null, which is false."""
    column = expression.column()
    return lambda messages: truths(column(messages), "a condition")
