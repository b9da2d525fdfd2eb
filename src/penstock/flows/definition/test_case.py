"""Example messages in a definition, and what is expected of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timezone
from typing import Any

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from penstock.flows.definition.model import FlowModel, refused
from penstock.flows.error_codes import is_known
from penstock.flows.expressions import ExpressionError, evaluate
from penstock.flows.expressions.value_text import bytes_of, time_text


class ExampleMessage(FlowModel):
    """A message that the trigger gives."""

    payload: Any = Field(
        default=None, description="The payload; objects and lists become JSON bytes."
    )
    attribute: dict[str, Any] = Field(default_factory=dict, description="Its attributes.")
    variable: dict[str, Any] = Field(default_factory=dict, description="Its variables.")

    def payload_bytes(self) -> bytes | None:
        """Return the payload as a trigger has it."""
        return bytes_of(self.payload)


class Reply(FlowModel):
    """What a system replies to a step: a reply of HTTP, rows of a query, or an error."""

    status: int = Field(default=200, ge=100, le=599, description="The status of HTTP.")
    headers: dict[str, str] = Field(default_factory=dict, description="The headers of HTTP.")
    body: Any = Field(default=None, description="The body of HTTP; objects and lists are JSON.")
    rows: list[dict[str, Any]] = Field(default_factory=list, description="The rows of a query.")
    error: str | None = Field(default=None, description="The code of an error, instead of a reply.")

    @field_validator("error")
    @classmethod
    def _is_known(cls, error: str | None) -> str | None:
        if error is not None and not is_known(error):
            raise refused(f"given {error!r:.60}; give a code of docs/flows.md, as HTTP:UNAVAILABLE")
        return error


class ExpectedMessage(FlowModel):
    """What a message must be: only the parts that are given are compared."""

    payload: Any = Field(default=None, description="The payload; JSON is compared as values.")
    attribute: dict[str, Any] = Field(
        default_factory=dict, description="Attributes that it must have."
    )
    variable: dict[str, Any] = Field(
        default_factory=dict, description="Variables that it must have."
    )


class ExpectedPublish(FlowModel):
    """A message that must be published."""

    step: str | None = Field(default=None, description="The `id` of the step.")
    topic: str | None = Field(default=None, description="The topic of Kafka.")
    key: str | None = Field(default=None, description="The key of Kafka.")
    value: Any = Field(default=None, description="The content; JSON is compared as values.")
    fields: dict[str, Any] = Field(
        default_factory=dict,
        description="Other fields: `partition` and `headers` of Kafka, `exchange`, `routing_key`, "
        "`message_id` and `headers` of RabbitMQ, `destination`, `correlation_id` and `properties` of "
        "JMS, `method` and `url` of HTTP, the columns or parameters of a database.",
    )


class ExpectedDeadLetter(FlowModel):
    """A message that must fail for good."""

    step: str | None = Field(default=None, description="The `id` of the step that fails.")
    code: str | None = Field(default=None, description="The code of its error.")
    payload: Any = Field(default=None, description="The payload at that step.")


class Expected(FlowModel):
    """What is expected; what is not given is not compared, an empty list says that there is none."""

    results: tuple[ExpectedMessage, ...] | None = Field(
        default=None, description="The messages at the end of the flow, in their order."
    )
    published: tuple[ExpectedPublish, ...] | None = Field(
        default=None, description="The messages that are published, in their order."
    )
    dead_letters: tuple[ExpectedDeadLetter, ...] | None = Field(
        default=None, description="The dead letters, in their order."
    )
    status: dict[str, int] | None = Field(
        default=None, description="How many messages are done, filtered, joined, handled, failed."
    )
    stopped: str | None = Field(
        default=None, description="The step at which the flow stops, or waits for a system."
    )

    @model_validator(mode="after")
    def _expects_something(self) -> Self:
        if not self.model_fields_set:
            raise refused(f"expects nothing; give one of: {', '.join(type(self).model_fields)}")
        return self


class TestCase(FlowModel):
    """One test."""

    # pytest must not collect it where it is imported.
    __test__ = False

    name: str = Field(min_length=1, description="What is shown.")
    messages: tuple[ExampleMessage, ...] = Field(
        min_length=1, description="The messages of one batch."
    )
    replies: dict[str, Reply | list[Reply]] = Field(
        default_factory=dict,
        description="What systems reply to steps, by the `id` of the step; a list: one after the other, "
        "the last one again and again.",
    )
    now: str | None = Field(default=None, description="What `now()` is, in ISO 8601.")
    expect: Expected = Field(description="What must come out.")

    @model_validator(mode="before")
    @classmethod
    def _dates_are_texts(cls, given: Any) -> Any:
        return _without_dates(given)

    @field_validator("now", mode="before")
    @classmethod
    def _is_a_time(cls, now: Any) -> Any:
        if isinstance(now, datetime):
            return time_text(now)
        if isinstance(now, str):
            try:
                time_of(now)
            except ExpressionError as error:
                raise refused(f"given {now!r:.60}; {error}") from None
        return now

    def named_steps(self) -> Iterator[str]:
        """Yield the steps that the test names."""
        yield from self.replies
        published = [each.step for each in self.expect.published or ()]
        dead = [each.step for each in self.expect.dead_letters or ()]
        yield from (step for step in [*published, *dead] if step is not None)

    def replies_to(self, step: str) -> list[Reply]:
        """Return the replies to a step."""
        given = self.replies.get(step, [])
        return given if isinstance(given, list) else [given]


def time_of(text: str) -> datetime:
    """Return the time of a text, as the function `parse_time` reads it."""
    found: datetime = evaluate("parse_time(payload)", _Text(text))
    return found


class _Text:
    """What an expression sees of a text."""

    attribute = variable = error = None

    def __init__(self, text: str) -> None:
        self.payload = self.document = text


def _without_dates(value: Any) -> Any:
    """Return the values of YAML with texts where it reads days: JSON has none. A time has a zone."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _without_dates(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_dates(part) for part in value]
    return value
