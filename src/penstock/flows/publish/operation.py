"""The step `publish`: messages to another system, confirmed before the next step begins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from penstock.errors import nearest
from penstock.flows.definition.model import FlowModel, build, refused
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.message import Message, Messages
from penstock.flows.running.bound_step import Attempt, BoundStep, pieces
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.stages import Bind
from penstock.flows.running.systems import PublishRequest

Fields = Callable[[Message], Mapping[str, Any]]
FieldsOfAll = Callable[[Messages], Sequence[Mapping[str, Any]]]


class Operation(FlowModel):
    """The base of all operations: one system each."""

    name: ClassVar[str]
    # The part of the codes of errors before the colon.
    system: ClassVar[str]

    @abstractmethod
    def fields(self) -> Fields:
        """Return what makes the fields of a request of a message."""

    def fields_of_all(self) -> FieldsOfAll | None:
        """Return what makes the fields for many messages at once, where that is quicker.

        It raises where one of them has none: then `fields` is called for each.
        """
        return None

    @abstractmethod
    def target(self) -> str:
        """Return where messages go, for drawings and traces."""


OPERATIONS: dict[str, type[Operation]] = {}
"""All operations by their names."""


def operation(cls: type[Operation]) -> type[Operation]:
    """Add an operation to the table."""
    OPERATIONS[cls.name] = cls
    return cls


def _read(given: Any) -> Operation:
    if isinstance(given, Operation):
        return given
    known = ", ".join(sorted(OPERATIONS))
    if not isinstance(given, Mapping) or len(given) != 1:
        what = (
            f"given {' and '.join(map(str, given))}"
            if isinstance(given, Mapping)
            else f"given {given!r:.60}"
        )
        raise refused(
            f"{what}; publish to exactly one system, as in 'kafka: {{topic: orders}}'; known: {known}"
        )
    ((name, options),) = given.items()
    if name not in OPERATIONS:
        raise refused(f"there is no operation {name!r:.60}; {nearest(str(name), [*OPERATIONS])}")
    made: Operation = build(OPERATIONS[name], str(name), {} if options is None else options, None)
    return made


class _OperationReader:
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _read,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda made, info: {
                    made.name: made.model_dump(
                        mode="json", exclude_unset=True, context=info.context
                    )
                },
                info_arg=True,
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "object", "propertyNames": {"enum": [*OPERATIONS]}, "minProperties": 1}


@step_kind
class PublishStep(FlowStep):
    """Publishes each message, and waits for the confirmations of the batch.

    The payload stays. What the system says about a message is added to its attributes: for Kafka the
    topic, the partition and the offset of the record that was written.
    """

    name = "publish"
    main_option = "to"

    to: Annotated[Operation, _OperationReader()] = Field(
        description="The system with its options.", json_schema_extra={"takes_mapping": True}
    )

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what publishes."""
        return _Publishes(self.to, path)

    def acts_outside(self) -> bool:
        """Return whether the system is another one than Kafka."""
        return self.to.name != "kafka"

    def summary(self) -> str:
        """Return the system and where messages go in it."""
        return f"{self.to.name} {self.to.target()}"


class _Publishes(BoundStep):
    def __init__(self, to: Operation, path: str) -> None:
        self._to = to
        self._path = path
        self._fields = to.fields()
        self._fields_of_all = to.fields_of_all()

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        failed: list[tuple[Message, Fault]] = []
        sent: list[Message] = []
        requests: list[PublishRequest] = []
        for some in pieces(messages):
            self._request(some, sent, requests, failed)
        if not requests:
            return Attempt([], failed)
        try:
            receipts = run.systems.publisher.publish(self._path, self._to, requests)
        except Exception as error:  # the system is away: all of them failed
            fault = fault_of(error, self._to.system)
            return Attempt([], [*failed, *((message, fault) for message in sent)])
        found: list[Message] = []
        for message, receipt in zip(sent, receipts, strict=True):
            if isinstance(receipt, Fault):
                failed.append((message, receipt))
            else:
                found.append(message.published(receipt))
        return Attempt(found, failed)

    def _request(
        self,
        messages: Sequence[Message],
        sent: list[Message],
        requests: list[PublishRequest],
        failed: list[tuple[Message, Fault]],
    ) -> None:
        """Add the requests of messages, and the messages for which there is none."""
        if self._fields_of_all is not None:
            try:
                requests += map(PublishRequest, self._fields_of_all(Messages(messages)))
            except Exception:  # noqa: S110 - one by one, the message that it belongs to has it
                pass
            else:
                sent += messages
                return
        for message in messages:
            try:
                requests.append(PublishRequest(self._fields(message)))
                sent.append(message)
            except Exception as error:  # an expression without a value for this message
                failed.append((message, fault_of(error)))
