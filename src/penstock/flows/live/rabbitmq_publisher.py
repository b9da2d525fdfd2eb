"""Messages of publish operations to RabbitMQ: hundreds on their way before the first is confirmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.publish.operations import RabbitMqPublish
from penstock.flows.running.systems import PublishRequest, Receipt

if TYPE_CHECKING:
    from penstock.sinks.rabbitmq.amqp_connection import AmqpConnection
    from penstock.sinks.rabbitmq.publisher import Publisher

_PERSISTENT, _TRANSIENT = 2, 1
# The last bytes of a connection come before its end.
_LOOKS = 3


class RabbitMqPublisher:
    """One connection for each server, exchange and kind of confirmation."""

    def __init__(self) -> None:
        self._open: dict[tuple[Any, ...], tuple[AmqpConnection, Publisher]] = {}

    def publish(
        self, operation: RabbitMqPublish, requests: Sequence[PublishRequest]
    ) -> list[Receipt | Fault]:
        """Publish the messages, and wait until each is confirmed."""
        receipts: list[Receipt | Fault | None] = [None] * len(requests)
        exchanges = {str(request.fields["exchange"]) for request in requests}
        for exchange in sorted(exchanges):
            mine = [n for n, each in enumerate(requests) if each.fields["exchange"] == exchange]
            self._to(exchange, operation, requests, mine, receipts)
        return [each if each is not None else {} for each in receipts]

    def close(self) -> None:
        """Close the connections."""
        while self._open:
            self._open.popitem()[1][0].close()

    def _to(
        self,
        exchange: str,
        operation: RabbitMqPublish,
        requests: Sequence[PublishRequest],
        mine: list[int],
        receipts: list[Receipt | Fault | None],
    ) -> None:
        from penstock.sinks.rabbitmq.publisher import Message  # noqa: PLC0415 - an extra

        messages, numbers = [], []
        properties_of = _writer(operation)
        for number in mine:
            fields = requests[number].fields
            receipts[number] = {"exchange": exchange, "routing_key": fields["routing_key"]}
            try:
                properties = properties_of(fields)
            except ValueError as error:
                receipts[number] = Fault("RABBITMQ:REFUSED", str(error))
                continue
            messages.append(Message(fields["routing_key"], properties, fields["value"]))
            numbers.append(number)
        try:
            refused = self._publisher(operation, exchange).send(messages)
        except PenstockError as error:
            self.close()
            fault = fault_of(error, "RABBITMQ")
            receipts[:] = [fault if n in numbers else each for n, each in enumerate(receipts)]
            return
        for at, reason in refused.items():
            receipts[numbers[at]] = Fault("RABBITMQ:REFUSED", reason)

    def _publisher(self, operation: RabbitMqPublish, exchange: str) -> Publisher:
        broker = operation.broker()
        key = (broker, exchange, operation.mandatory)
        if key in self._open and not _is_alive(self._open[key][0]):
            self._open.pop(key)[0].close()
        if key not in self._open:
            connection = broker.connection("penstock flow")
            from penstock.sinks.rabbitmq.publisher import Publisher  # noqa: PLC0415 - an extra

            connection.open()
            publisher = Publisher(connection, exchange, mandatory=operation.mandatory)
            publisher.begin()
            self._open[key] = (connection, publisher)
        return self._open[key][1]


def _is_alive(connection: AmqpConnection) -> bool:
    """Return whether the server has not closed it: between batches nothing replies to its heartbeats."""
    for _ in range(_LOOKS):
        connection.poll(0)
    return connection.is_open


def _writer(operation: RabbitMqPublish) -> Callable[[Any], bytes]:
    """Return what writes the properties: without headers only the id, their last one, differs."""
    from penstock.sinks.rabbitmq.amqp_values import write_short  # noqa: PLC0415 - an extra

    without_id = _properties(operation, {"headers": {}, "message_id": None})
    before_id = _properties(operation, {"headers": {}, "message_id": ""})[:-1]

    def write(fields: Any) -> bytes:
        name = fields["message_id"]
        if fields["headers"]:
            return _properties(operation, fields)
        return without_id if name is None else before_id + write_short(name, "message_id")

    return write


def _properties(operation: RabbitMqPublish, fields: Any) -> bytes:
    from penstock.sinks.rabbitmq.amqp_values import write_properties  # noqa: PLC0415 - an extra

    given = {
        "content_type": operation.content_type,
        "headers": [(name, str(text).encode()) for name, text in fields["headers"].items()] or None,
        "delivery_mode": _PERSISTENT if operation.persistent else _TRANSIENT,
        "message_id": fields["message_id"],
    }
    return write_properties({name: value for name, value in given.items() if value is not None})
