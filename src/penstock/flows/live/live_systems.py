"""All systems of a process that runs flows."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.config import Connection
from penstock.flows.error_codes import Fault
from penstock.flows.live.databases import Databases
from penstock.flows.live.http_requests import HttpRequests
from penstock.flows.live.jms_publisher import JmsPublisher
from penstock.flows.live.kafka_publisher import KafkaPublisher
from penstock.flows.live.rabbitmq_publisher import RabbitMqPublisher
from penstock.flows.publish.operation import Operation
from penstock.flows.publish.operations import (
    DatabasePublish,
    HttpPublish,
    JmsPublish,
    KafkaPublish,
    RabbitMqPublish,
)
from penstock.flows.running.systems import PublishRequest, Receipt, Systems


class LiveSystems:
    """Clients that are opened when a step first needs them."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._kafka = KafkaPublisher(connection)
        self._rabbitmq = RabbitMqPublisher()
        self._jms = JmsPublisher()
        self._requests = HttpRequests()
        self._databases = Databases()

    def systems(self) -> Systems:
        """Return them as a run takes them."""
        return Systems(self, self._requests, self._databases)

    def publish(
        self, step: str, operation: Operation, requests: Sequence[PublishRequest]
    ) -> Sequence[Receipt | Fault]:
        """Publish to the system of an operation."""
        if isinstance(operation, KafkaPublish):
            return self._kafka.publish(operation, requests)
        if isinstance(operation, RabbitMqPublish):
            return self._rabbitmq.publish(operation, requests)
        if isinstance(operation, JmsPublish):
            return self._jms.publish(operation, requests)
        if isinstance(operation, HttpPublish):
            return self._requests.publish(step, operation, requests)
        if isinstance(operation, DatabasePublish):
            return self._databases.publish(operation, requests)
        reason = f"publishing to {operation.name} is only possible in tests of flows"
        return [Fault("CORE:RUNTIME", reason)] * len(requests)

    def close(self) -> None:
        """Close all clients."""
        for each in (self._kafka, self._rabbitmq, self._jms, self._databases):
            each.close()
