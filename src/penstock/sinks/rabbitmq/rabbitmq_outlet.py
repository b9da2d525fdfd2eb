"""Sends rows as messages of RabbitMQ, in a task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from typing_extensions import Self

from penstock.sinks.messages import Outlet, RecordIds, Refusal
from penstock.sinks.rabbitmq.amqp_connection import AmqpConnection
from penstock.sinks.rabbitmq.amqp_values import WrongValueError, write_properties, write_short
from penstock.sinks.rabbitmq.broker_options import Broker
from penstock.sinks.rabbitmq.publisher import Message, Publisher

ID = "message_id"
_HEADERS = "headers"


@dataclass(frozen=True)
class Publishing:
    """What every message of a sink has in common."""

    broker: Broker
    exchange: str
    routing_key: str | None
    mandatory: bool
    properties: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> RabbitMqOutlet:
        """Open an outlet in a task."""
        return RabbitMqOutlet(self)


class RabbitMqOutlet(Outlet):
    """A connection that publishes with confirms."""

    def __init__(self, publishing: Publishing) -> None:
        self._publishing = publishing
        self._connection: AmqpConnection = publishing.broker.connection("penstock sink")
        self._publisher = Publisher(
            self._connection, publishing.exchange, mandatory=publishing.mandatory
        )
        self._ids = RecordIds()
        self._around_id = _around(publishing.properties)

    def __enter__(self) -> Self:
        self._connection.open()
        try:
            self._publisher.begin()
        except BaseException:
            self._connection.close()
            raise
        return self

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def send(self, rows: pa.RecordBatch) -> Iterable[Refusal]:
        """Publish the rows; return those that are no messages, or that no queue got."""
        refusals: list[Refusal] = []
        messages, numbers = self._messages(rows, refusals)
        refused = self._publisher.send(messages)
        refusals += (
            Refusal(numbers[at], "UnroutableError" if _is_unroutable(why) else "RefusedError", why)
            for at, why in refused.items()
        )
        return refusals

    def _messages(
        self, rows: pa.RecordBatch, refusals: list[Refusal]
    ) -> tuple[list[Message], list[int]]:
        given = {name: rows.column(name).to_pylist() for name in self._names(rows)}
        ids = given.pop(ID, None) or self._own_ids(rows)
        keys = given.pop("routing_key", None)
        bodies = given.pop("value")
        messages, numbers = [], []
        for row, body in enumerate(bodies):
            try:
                properties = self._properties(row, ids[row], given)
                key = self._key(keys[row] if keys else None)
            except WrongValueError as error:
                refusals.append(Refusal(row, "WrongValueError", str(error)))
                continue
            messages.append(Message(key, properties, body or b""))
            numbers.append(row)
        return messages, numbers

    def _names(self, rows: pa.RecordBatch) -> list[str]:
        return [name for name in rows.schema.names if not name.startswith("_penstock_")]

    def _own_ids(self, rows: pa.RecordBatch) -> list[str | None]:
        ids = self._ids.of(rows)
        return [None] * rows.num_rows if ids is None else ids.to_pylist()

    def _key(self, own: str | None) -> str:
        key = self._publishing.routing_key if own is None else own
        if key is None:
            raise WrongValueError(
                "the routing key is null, and there is no 'routing_key' for such rows"
            )
        write_short(key, "the routing key")
        return key

    def _properties(self, row: int, own_id: str | None, given: dict[str, list[Any]]) -> bytes:
        if not given and own_id is not None:
            before, after = self._around_id
            return before + write_short(own_id, ID) + after
        values = {name: column[row] for name, column in given.items() if column[row] is not None}
        if headers := values.get(_HEADERS):
            values[_HEADERS] = [(pair["key"] or "", pair["value"]) for pair in headers]
        return write_properties({**self._publishing.properties, **values, ID: own_id})


def _around(properties: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return what of the properties is before a message's id, and what is after it."""
    mark = "\0id\0"
    before, _, after = write_properties({**properties, ID: mark}).partition(write_short(mark, ID))
    return before, after


def _is_unroutable(reason: str) -> bool:
    return reason.startswith("312 ")
