"""Records of publish operations: the whole batch on its way, then one wait for all receipts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.config import Connection, find_connection
from penstock.errors import PenstockError
from penstock.flows.definition.kafka_options import KafkaConnection
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.publish.operations import KafkaPublish
from penstock.flows.running.systems import PublishRequest, Receipt

if TYPE_CHECKING:
    from penstock.kafka.producing.producer import Producer
    from penstock.kafka.producing.receipt import Receipt as OnItsWay


class KafkaPublisher:
    """One producer for each cluster and set of options."""

    def __init__(self, default: Connection | None) -> None:
        self._default = default
        self._producers: dict[str, Producer] = {}

    def publish(
        self, operation: KafkaPublish, requests: Sequence[PublishRequest]
    ) -> list[Receipt | Fault]:
        """Write the records, and return where each of them is."""
        producer = self._producer(operation)
        sent = [_sent(producer, request.fields) for request in requests]
        return [_receipt(each) for each in sent]

    def close(self) -> None:
        """Close the producers; what they were given was confirmed or reported before."""
        while self._producers:
            self._producers.popitem()[1].close()

    def _producer(self, operation: KafkaPublish) -> Producer:
        from penstock.kafka.producing.producer import Producer  # noqa: PLC0415 - a slow import

        connection = connection_of(operation.connection) or self._default or find_connection(None)
        settings = operation.producer.settings()
        key = repr((sorted(connection.to_config().items(), key=str), sorted(settings.items())))
        if key not in self._producers:
            self._producers[key] = Producer(
                connection, **{name.replace(".", "_"): value for name, value in settings.items()}
            )
        return self._producers[key]


def connection_of(given: str | KafkaConnection | None) -> Connection | None:
    """Return the connection that a definition gives, None where it gives none."""
    if isinstance(given, KafkaConnection):
        return given.connection()
    return None if given is None else find_connection(given)


def _sent(producer: Producer, fields: Mapping[str, Any]) -> OnItsWay | Fault:
    try:
        return producer.produce(
            fields["topic"],
            fields["key"],
            fields["value"],
            partition=fields["partition"],
            headers=fields["headers"] or None,
        )
    except PenstockError as error:
        return fault_of(error, "KAFKA")


def _receipt(sent: OnItsWay | Fault) -> Receipt | Fault:
    if isinstance(sent, Fault):
        return sent
    try:
        record = sent.result().message
    except PenstockError as error:
        return fault_of(error, "KAFKA")
    return {"topic": record.topic(), "partition": record.partition(), "offset": record.offset()}
