"""The operations: Kafka, RabbitMQ, JMS, HTTP, databases."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from typing_extensions import Self

from penstock.errors import ConfigError
from penstock.flows.definition.http_request import HttpOptions, checked_statuses
from penstock.flows.definition.kafka_options import AnyKafkaConnection, ProducerAdvanced
from penstock.flows.definition.model import refused
from penstock.flows.expressions import Expression, ExpressionError, Template
from penstock.flows.expressions.scope import Column, Scopes
from penstock.flows.expressions.value_text import (
    bytes_of,
    bytes_of_all,
    text_of,
)
from penstock.flows.message import Message, Messages
from penstock.flows.publish.database_address import checked_address
from penstock.flows.publish.header_text import check_header_text, header_maker
from penstock.flows.publish.operation import Fields, FieldsOfAll, Operation, operation
from penstock.flows.steps.sql_query import parameters_of, simple
from penstock.pipeline.values import Duration
from penstock.sinks.jms.jms_broker import BrokerOptions as JmsOptions
from penstock.sinks.rabbitmq.broker_options import BrokerOptions as RabbitMqOptions

_Name = Annotated[str, Field(pattern=r"^[A-Za-z_]\w{0,62}$")]
_PAYLOAD = Expression("payload")
_LONGEST_TOPIC = 249
_PARTITION = re.compile(r"[0-9]{1,10}")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def topic_name(name: str) -> str:
    """Return a name that a topic can have, or raise what is wrong with it."""
    if not 0 < len(name) <= _LONGEST_TOPIC or set(name) - _LETTERS or name in (".", ".."):
        raise ExpressionError(
            f"{name[:60]!r} cannot be a topic; allowed: 1 to {_LONGEST_TOPIC} letters, digits, dots, "
            "dashes and underscores"
        )
    return name


@operation
class KafkaPublish(Operation):
    """A record of a topic. The attributes get its topic, partition and offset."""

    name = "kafka"
    system = "KAFKA"

    connection: AnyKafkaConnection | None = Field(
        default=None,
        description="A named connection, or how to reach the cluster; default: that of the flow.",
    )
    topic: Template = Field(description="The topic.")
    value: Expression = Field(
        default=_PAYLOAD, validate_default=True, description="The content; default: the payload."
    )
    partition: Template | None = Field(
        default=None, description="The partition; default: by the key."
    )
    key: Template | None = Field(
        default=None, description="The key: messages with one key go to one partition."
    )
    headers: Template | dict[str, Template] | None = Field(
        default=None, description="The headers: a mapping, or a text that is a JSON object."
    )
    producer: ProducerAdvanced = Field(
        default_factory=ProducerAdvanced, description="The advanced options of the producer."
    )

    @field_validator("topic")
    @classmethod
    def _can_be_a_topic(cls, topic: Template) -> Template:
        try:
            topic_name(topic.sample())
        except ExpressionError as error:
            raise refused(str(error)) from None
        return topic

    @field_validator("partition")
    @classmethod
    def _can_be_a_partition(cls, partition: Template | None) -> Template | None:
        if partition is not None and partition.is_plain:
            _partition(partition.given)
        return partition

    @field_validator("headers", mode="before")
    @classmethod
    def _are_headers(cls, headers: Any) -> Any:
        if not isinstance(headers, str | dict | Template | None):
            raise refused(
                f"given {headers!r:.60}; headers are a mapping, or a text that is a JSON object"
            )
        # Read here: of two forms that do not fit, pydantic reports both.
        if isinstance(headers, dict):
            return {str(name): _header_value(name, value) for name, value in headers.items()}
        return Template.read(headers) if isinstance(headers, str) else headers

    @field_validator("headers")
    @classmethod
    def _are_json(cls, headers: Any) -> Any:
        if isinstance(headers, Template):
            check_header_text(headers)
        return headers

    def fields(self) -> Fields:
        """Return what makes a record."""
        topic, value = _topic(self.topic), self.value.evaluator()
        key = self.key.evaluator() if self.key else None
        partition = self.partition.evaluator() if self.partition else None
        headers = _headers(self.headers)

        def make(message: Message) -> dict[str, Any]:
            return {
                "topic": topic(message),
                "value": bytes_of(value(message)),
                "key": None if key is None else bytes_of(key(message)),
                "partition": None if partition is None else _partition(str(partition(message))),
                "headers": headers(message),
            }

        return make

    def fields_of_all(self) -> FieldsOfAll:
        """Return what makes the records of many messages."""
        topics, values = _topics(self.topic), self.value.column()
        keys = None if self.key is None else self.key.column()
        partitions = None if self.partition is None else self.partition.column()
        headers = _headers(self.headers)
        has_headers = self.headers is not None

        def make(messages: Messages) -> list[dict[str, Any]]:
            count = len(messages)
            none = [None] * count
            columns = (
                topics(messages),
                bytes_of_all(values(messages)),
                none if keys is None else bytes_of_all(keys(messages)),
                none if partitions is None else [_partition(str(p)) for p in partitions(messages)],
                [*map(headers, messages)] if has_headers else [[]] * count,
            )
            return [
                {"topic": topic, "value": value, "key": key, "partition": partition, "headers": h}
                for topic, value, key, partition, h in zip(*columns, strict=True)
            ]

        return make

    def target(self) -> str:
        """Return the topic."""
        return self.topic.given


def _topic(given: Template) -> Callable[[Message], str]:
    """Return what makes the topic; one that no message changes was checked with the definition."""
    if given.is_plain:
        plain = given.text(None)
        return lambda _message: plain
    text = given.evaluator()
    return lambda message: topic_name(str(text(message)))


def _topics(given: Template) -> Column:
    if given.is_plain:
        return given.column()
    each = given.column()

    def topics(messages: Scopes) -> list[str]:
        found = [*map(str, each(messages))]
        for topic in set(found):
            topic_name(topic)
        return found

    return topics


def _partition(text: str) -> int:
    if not _PARTITION.fullmatch(text) or int(text) > 2**31 - 1:
        raise ExpressionError(f"{text[:40]!r} is not a partition; give a number from 0")
    return int(text)


def _header_value(name: Any, value: Any) -> Template:
    try:
        return Template.read(value)
    except ExpressionError as error:
        raise refused(f"the header {name!r:.60}: {error}") from None


def _headers(given: Template | dict[str, Template] | None) -> Any:
    if given is None:
        return lambda _message: []
    if isinstance(given, Template):
        return header_maker(given)
    made = [(name, value.evaluator()) for name, value in given.items()]
    return lambda message: [(name, bytes_of(value(message)) or b"") for name, value in made]


@operation
class RabbitMqPublish(RabbitMqOptions, Operation):
    """A message of an exchange, confirmed by RabbitMQ. The attributes get exchange and routing key."""

    name = "rabbitmq"
    system = "RABBITMQ"

    exchange: Template = Field(
        default=Template(""),
        validate_default=True,
        description="The exchange; default: the one of queues.",
    )
    routing_key: Template = Field(
        default=Template(""),
        validate_default=True,
        description="The routing key; without exchange: the queue.",
    )
    value: Expression = Field(
        default=_PAYLOAD, validate_default=True, description="The body; default: the payload."
    )
    headers: dict[str, Template] = Field(default_factory=dict, description="Headers.")
    message_id: Template | None = Field(
        default=None, description="The id, by which consumers recognize a message that comes again."
    )
    content_type: str | None = Field(default=None, description="The property of all messages.")
    persistent: bool = Field(
        default=True, description="Whether messages survive a restart of RabbitMQ."
    )
    confirms: bool = Field(
        default=True,
        description="Whether to wait until RabbitMQ has each message. `false` has no effect: a message "
        "is published when RabbitMQ has it.",
    )
    mandatory: bool = Field(
        default=True,
        description="Whether a message that no queue gets fails; if not, RabbitMQ drops it.",
    )

    @model_validator(mode="after")
    def _has_an_aim(self) -> Self:
        if not self.exchange.given and not self.routing_key.given:
            raise refused("where do messages go? Give 'routing_key' (a queue) or 'exchange'")
        return self

    def unused(self) -> dict[str, str]:
        """Return the confirms where they are not wanted: there is no publishing without them."""
        reason = "a message is published when RabbitMQ has it, and 'retry' and 'on_error' need that"
        return self._unless(self.confirms, reason, "confirms")

    def fields(self) -> Fields:
        """Return what makes a message."""
        value = self.value.evaluator()
        texts = {"exchange": self.exchange.evaluator(), "routing_key": self.routing_key.evaluator()}
        headers = [(name, each.evaluator()) for name, each in self.headers.items()]
        message_id = self.message_id.evaluator() if self.message_id else None

        def make(message: Message) -> dict[str, Any]:
            made: dict[str, Any] = {name: _short(text(message)) for name, text in texts.items()}
            made["value"] = bytes_of(value(message)) or b""
            made["headers"] = {name: each(message) for name, each in headers}
            made["message_id"] = None if message_id is None else _short(message_id(message))
            return made

        return make

    def fields_of_all(self) -> FieldsOfAll:
        """Return what makes many messages."""
        exchanges, keys = self.exchange.column(), self.routing_key.column()
        values = self.value.column()
        headers = [(name, each.evaluator()) for name, each in self.headers.items()]
        ids = None if self.message_id is None else self.message_id.column()

        def make(messages: Messages) -> list[dict[str, Any]]:
            columns = (
                _shorts(exchanges(messages)),
                _shorts(keys(messages)),
                bytes_of_all(values(messages)),
                [None] * len(messages) if ids is None else _shorts(ids(messages)),
                [{name: each(m) for name, each in headers} for m in messages],
            )
            return [
                {"exchange": e, "routing_key": k, "value": v or b"", "message_id": i, "headers": h}
                for e, k, v, i, h in zip(*columns, strict=True)
            ]

        return make

    def target(self) -> str:
        """Return exchange and routing key."""
        return "/".join(each.given for each in (self.exchange, self.routing_key) if each.given)


def _utf8(text: Any) -> Any:
    """Return a text that other systems can be sent: one text that cannot be written fails its batch."""
    if isinstance(text, str):
        bytes_of(text)
    return text


def _short(text: Any) -> str:
    _utf8(text)
    if len(str(text).encode()) > 255:
        raise ExpressionError(
            f"{str(text)[:40]!r} has more than 255 bytes, which AMQP does not allow"
        )
    return str(text)


def _shorts(texts: list[Any]) -> list[str]:
    for text in set(texts):
        _short(text)
    return texts


@operation
class JmsPublish(JmsOptions, Operation):
    """A message of a queue or topic of a JMS broker. The attributes get the destination."""

    name = "jms"
    system = "JMS"

    queue: Template | None = Field(default=None, description="The queue.")
    topic: Template | None = Field(default=None, description="The topic.")
    value: Expression = Field(
        default=_PAYLOAD, validate_default=True, description="The body; default: the payload."
    )
    message: Literal["text", "bytes"] = Field(default="text", description="The kind of message.")
    properties: dict[str, Template] = Field(default_factory=dict, description="Properties.")
    correlation_id: Template | None = Field(default=None, description="The correlation id.")
    persistent: bool = Field(
        default=True, description="Whether the broker stores messages on its disk."
    )
    priority: int = Field(default=4, ge=0, le=9, description="The priority.")

    @model_validator(mode="after")
    def _has_one_destination(self) -> Self:
        if (self.queue is None) == (self.topic is None):
            raise refused("give the destination: 'queue' or 'topic', and not both")
        return self

    def fields(self) -> Fields:
        """Return what makes a message."""
        destination, value = (
            (self.queue or self.topic or Template("")).evaluator(),
            self.value.evaluator(),
        )
        properties = [(name, each.evaluator()) for name, each in self.properties.items()]
        correlation = self.correlation_id.evaluator() if self.correlation_id else None

        def make(message: Message) -> dict[str, Any]:
            body = value(message)
            return {
                "destination": _utf8(str(destination(message))),
                "value": None
                if body is None
                else _utf8(text_of(body))
                if self.message == "text"
                else bytes_of(body),
                "properties": {name: _utf8(each(message)) for name, each in properties},
                "correlation_id": None if correlation is None else _utf8(correlation(message)),
            }

        return make

    def target(self) -> str:
        """Return the queue or the topic."""
        return (self.queue or self.topic or Template("")).given


@operation
class HttpPublish(HttpOptions, Operation):
    """A request with the payload as its body. The attributes get the status of the reply."""

    name = "http"
    system = "HTTP"

    method: Literal["POST", "PUT", "PATCH", "DELETE"] = Field(
        default="POST", description="The method."
    )
    value: Expression = Field(
        default=_PAYLOAD, validate_default=True, description="The body; default: the payload."
    )
    success: Annotated[tuple[str, ...], BeforeValidator(checked_statuses)] = Field(
        default=("2xx",), min_length=1, description="The statuses that are a success."
    )

    def fields(self) -> Fields:
        """Return what makes a request."""
        request = self.request(self.method, self.value)
        return lambda message: {"request": request(message)}

    def target(self) -> str:
        """Return the address."""
        return self.url.given


@operation
class DatabasePublish(Operation):
    """A row of a table, or a statement with parameters. The attributes get the number of rows."""

    name = "database"
    system = "DATABASE"

    url: str = Field(description="The address, as of the sink `database`.")
    password: SecretStr | None = Field(default=None, description="The user's password.")
    table: str | None = Field(
        default=None,
        pattern=r"^\w{1,63}(\.\w{1,63})?$",
        description="The table that rows are added to.",
    )
    columns: dict[_Name, Expression] = Field(
        default_factory=dict, description="The columns of the row, each by an expression."
    )
    statement: str | None = Field(
        default=None, description="A statement with parameters as `:id`, instead of `table`."
    )
    parameters: dict[str, Expression] = Field(
        default_factory=dict, description="The values of the parameters."
    )
    timeout: Duration = Field(
        default=30.0, gt=0, le=3600, description="The longest time of a statement."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        try:
            checked_address(self.url, self.password)
        except ConfigError as error:
            raise refused(f"'url': {error}") from None
        if (self.table is None) == (self.statement is None):
            raise refused("give 'table' with 'columns', or 'statement' with 'parameters'")
        if self.table is not None and not self.columns:
            raise refused("'table' needs 'columns': a mapping of columns to expressions")
        if self.columns and self.table is None:
            raise refused("'columns' needs 'table'; a statement has 'parameters'")
        if self.parameters and self.statement is None:
            raise refused("'parameters' needs 'statement'; a table has 'columns'")
        if self.statement is not None:
            self._check_statement(self.statement)
        return self

    def _check_statement(self, statement: str) -> None:
        if "${" in statement:
            raise refused(
                "the statement has '${': a value in its text could change it; write :name, and give "
                "the expression in 'parameters'"
            )
        if different := sorted(parameters_of(statement) ^ set(self.parameters)):
            raise refused(
                f"'statement' and 'parameters' differ in :{different[0]}; give each parameter once"
            )

    def text(self) -> str:
        """Return the statement."""
        if self.statement is not None:
            return self.statement
        names = ", ".join(self.columns)
        places = ", ".join(f":{name}" for name in self.columns)
        return f"INSERT INTO {self.table} ({names}) VALUES ({places})"  # noqa: S608 - names of the definition

    def fields(self) -> Fields:
        """Return what makes the parameters."""
        named = self.columns if self.table is not None else self.parameters
        values = [(name, each.evaluator()) for name, each in named.items()]
        return lambda message: {name: simple(value(message)) for name, value in values}

    def target(self) -> str:
        """Return the table."""
        return self.table or "statement"
