"""`Flow`: a trigger, steps, and what becomes of messages that fail; for YAML and Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, ValidationError, field_validator, model_validator
from typing_extensions import Self

from penstock.errors import DefinitionError
from penstock.flows import steps as _steps  # noqa: F401 - the kinds of steps
from penstock.flows.definition.kafka_options import (
    AnyKafkaConnection,
    KafkaConnection,
    without_effect,
)
from penstock.flows.definition.model import FlowModel, problems_in, refused
from penstock.flows.definition.step_model import (
    MOST_OF_A_BATCH,
    AnyOnError,
    Handler,
    Step,
    Steps,
)
from penstock.flows.definition.test_case import TestCase
from penstock.flows.definition.triggers import AnyTrigger, KafkaTrigger
from penstock.flows.publish import operations as _operations
from penstock.flows.publish.operation import PublishStep
from penstock.pipeline.derived_names import imported_into, reserved_by
from penstock.pipeline.topic_pattern import surely_fits

_MOST_STEPS = 1000
# Of a system from which nothing can be taken back: about two seconds of RabbitMQ.
_MOST_OUTSIDE = 20_000


class Flow(FlowModel):
    """A trigger, steps for each of its messages, and what becomes of those that fail.

    >>> flow = (
    ...     Flow(name="large-orders", trigger={"kafka": "orders"})
    ...     .then(filter="payload.total > 100")
    ...     .then(publish={"kafka": {"topic": "large"}}, retry=3)
    ... )
    >>> [step.kind.name for step in flow.steps]
    ['filter', 'publish']
    """

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="Unique name: letters, digits, dot, dash and underscore.",
    )
    description: str = Field(default="", max_length=2000, description="What it is for.")
    connection: AnyKafkaConnection | None = Field(
        default=None,
        description="The Kafka cluster of trigger and publish operations that name none.",
    )
    trigger: AnyTrigger = Field(description="What starts it.")
    steps: Steps = Field(default=(), description="What happens to each message.")
    on_error: AnyOnError = Field(
        default=None,
        description="What becomes of a message that no step deals with: `dead-letter`, `stop`, or "
        "`{handler: [steps], then: end | dead-letter}`; default: `dead-letter`, but while a system is "
        "unavailable (`...:UNAVAILABLE`) the batch is run again until it is back.",
    )
    dead_letters: str | None = Field(
        default=None, description="The topic of the dead letters; default: `<name>.dead-letters`."
    )
    max_messages_per_batch: int | None = Field(
        default=None,
        ge=1,
        le=MOST_OF_A_BATCH,
        description="The most messages that are confirmed together, and so the most that a crash "
        "publishes again; default: 20000 where a step acts on another system than Kafka, 1000000 "
        "otherwise, and not more than a step `throttle` lets pass in a second. Fewer cost speed: each "
        "batch takes a part of a second.",
    )
    tests: tuple[TestCase, ...] = Field(
        default=(), description="Example messages and what is expected of them."
    )

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except ValidationError as error:
            name = options.get("name")
            origin = f"the flow {name!r}" if isinstance(name, str) else "the flow"
            raise DefinitionError(problems_in(error, Flow), origin, "flow") from None

    def then(self, **step: Any) -> Self:
        """Return the flow with one more step, given as YAML gives it; `try_` is `try`."""
        read = {name.rstrip("_"): value for name, value in step.items()}
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**given, "steps": (*self.steps, read)})

    @field_validator("name")
    @classmethod
    def _is_not_derived(cls, name: str) -> str:
        if owner := reserved_by(name):
            raise refused(
                f"given {name!r}; it belongs to the dead letters of {owner!r}; choose another"
            )
        return name

    @field_validator("on_error")
    @classmethod
    def _ends_messages(cls, given: Any) -> Any:
        if given in ("continue", "handler"):
            raise refused(
                f"given {given!r}; of a flow allowed: dead-letter, stop, or a mapping with 'handler'"
            )
        if isinstance(given, Handler) and given.then == "continue":
            raise refused(
                "'then: continue' is for steps: after the flow's handler there is no next step"
            )
        return given

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        seen: set[str] = set()
        for number, (path, step) in enumerate(self.all_steps(), start=1):
            if number > _MOST_STEPS:
                raise refused(
                    f"a flow has at most {_MOST_STEPS} steps; publish to a topic in between"
                )
            if step.id is not None and step.id in seen:
                raise refused(f"two steps have the id {step.id!r}; give each its own", f"{path}.id")
            seen.add(step.id or path)
            if step.on_error == "handler" and not isinstance(self.on_error, Handler):
                raise refused(
                    "'handler' needs the flow's handler: give the flow 'on_error: {handler: [...]}', or "
                    "the step '{handler: [...]}'",
                    f"{path}.on_error",
                )
        self._check_tests(seen)
        return self

    def _check_tests(self, known: set[str]) -> None:
        for number, case in enumerate(self.tests):
            for name in case.named_steps():
                if name not in known:
                    raise refused(
                        f"there is no step {name!r}; give the 'id' of a step: "
                        f"{', '.join(sorted(known)) or 'the flow has none'}",
                        f"tests[{number}]",
                    )

    @model_validator(mode="after")
    def _does_not_read_what_it_writes(self) -> Self:
        topics, connection = self._read_topics()
        if _reads(topics, self.dead_letter_topic):
            raise refused(
                f"the trigger reads {self.dead_letter_topic!r}, to which dead letters go: a message that "
                "fails would come back without end; give 'dead_letters' another topic",
                "dead_letters",
            )
        for path, step in self.all_steps():
            to = step.kind.to if isinstance(step.kind, PublishStep) else None
            if not isinstance(to, _operations.KafkaPublish):
                continue
            if (to.connection or self.connection) != connection:
                continue
            if to.topic.is_plain and _reads(topics, to.topic.given):
                raise refused(
                    f"given {to.topic.given!r}, which the trigger reads: each message would come back "
                    "without end; give another topic",
                    f"{path}.publish.kafka.topic",
                )
        return self

    def _read_topics(self) -> tuple[tuple[str, ...], AnyKafkaConnection | None]:
        """Return the topics or patterns that the trigger reads, and the cluster that it names."""
        if isinstance(self.trigger, KafkaTrigger):
            return self.trigger.topics, self.trigger.connection or self.connection
        topic = getattr(self.trigger, "topic", "") or imported_into(self.name)
        return (topic,), self.connection

    def all_steps(self) -> Iterator[tuple[str, Step]]:
        """Yield every step with its place, also those in other steps and in handlers."""
        yield from _walk(self.steps, "steps")
        if isinstance(self.on_error, Handler):
            yield from _walk(self.on_error.handler, "on_error.handler")

    @property
    def dead_letter_topic(self) -> str:
        """Return the topic of the dead letters."""
        return self.dead_letters or f"{self.name}.dead-letters"

    @property
    def batch_size(self) -> int:
        """Return how many messages a batch has at most."""
        if self.max_messages_per_batch is not None:
            return self.max_messages_per_batch
        kinds = [step.kind for _, step in self.all_steps()]
        most = _MOST_OUTSIDE if any(kind.acts_outside() for kind in kinds) else MOST_OF_A_BATCH
        return min([most, *(kind.most_of_a_batch() for kind in kinds)])

    @property
    def confirms_at_once(self) -> bool:
        """Return whether messages are confirmed before the steps: no failure brings them back."""
        return isinstance(self.trigger, KafkaTrigger) and self.trigger.advanced.confirm == "at-once"

    def notes(self) -> list[str]:
        """Return what in the definition has no effect or never happens, with the reasons."""
        return [*self._without_effect(), *self._never_complete()]

    def _never_complete(self) -> Iterator[str]:
        for path, step in self.all_steps():
            count = getattr(step.kind, "count", None) if step.kind.name == "join" else None
            if count is not None and count > self.batch_size and not self._splits():
                yield (
                    f"{path}.join.count: is never reached: a batch has at most {self.batch_size} "
                    "messages, and a group is made of those of one batch; see 'max_messages_per_batch'"
                )

    def _splits(self) -> bool:
        return any(step.kind.name in ("split", "python") for _, step in self.all_steps())

    def _without_effect(self) -> list[str]:
        return [
            f"{where}.{name}: has no effect: {reason}"
            for where, model in self._models()
            for name, reason in {**without_effect(model), **model.unused()}.items()
        ]

    def _models(self) -> Iterator[tuple[str, FlowModel]]:
        if isinstance(self.trigger, FlowModel):
            yield f"trigger.{self.trigger.name}", self.trigger
        if isinstance(self.connection, KafkaConnection):
            yield "connection", self.connection
        if isinstance(self.trigger, KafkaTrigger):
            yield "trigger.kafka.advanced", self.trigger.advanced
            if isinstance(self.trigger.connection, KafkaConnection):
                yield "trigger.kafka.connection", self.trigger.connection
        for path, step in self.all_steps():
            yield path, step
            yield f"{path}.{step.kind.name}", step.kind
            to = step.kind.to if isinstance(step.kind, PublishStep) else None
            if to is not None:
                yield f"{path}.publish.{to.name}", to
            if isinstance(to, _operations.KafkaPublish):
                yield f"{path}.publish.kafka.producer", to.producer
                if isinstance(to.connection, KafkaConnection):
                    yield f"{path}.publish.kafka.connection", to.connection


def _reads(topics: tuple[str, ...], topic: str) -> bool:
    """Return whether a topic is one of these, or fits one that is a pattern: all of its name."""
    return any(
        surely_fits(each, topic) if each.startswith("^") else each == topic for each in topics
    )


def _walk(steps: tuple[Step, ...], path: str) -> Iterator[tuple[str, Step]]:
    for number, step in enumerate(steps):
        where = f"{path}[{number}]"
        yield where, step
        for inner, _, below in step.kind.blocks():
            prefix = inner if inner.startswith(f".{step.kind.name}") else f".{inner}"
            yield from _walk(below, f"{where}{prefix}")
        if isinstance(step.on_error, Handler):
            yield from _walk(step.on_error.handler, f"{where}.on_error.handler")
