"""Messages of publish operations to JMS brokers: sent together, each one accepted by the broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.publish.operations import JmsPublish
from penstock.flows.running.systems import PublishRequest, Receipt
from penstock.sinks.jms.jms_broker import BrokerOptions
from penstock.sinks.jms.jms_sink import JmsSink

if TYPE_CHECKING:
    from penstock.sinks.jms.jms_outlet import JmsOutlet

_ROW = pa.schema(
    {
        "destination": pa.string(),
        "value": pa.binary(),
        "correlation_id": pa.string(),
        "properties": pa.map_(pa.string(), pa.string()),
    }
)
# Each message names its own destination.
_NO_DESTINATION = "penstock-flows"


class JmsPublisher:
    """One connection for each broker and kind of message."""

    def __init__(self) -> None:
        self._open: dict[tuple[Any, ...], JmsOutlet] = {}

    def publish(
        self, operation: JmsPublish, requests: Sequence[PublishRequest]
    ) -> list[Receipt | Fault]:
        """Send the messages, and wait until the broker has accepted or refused each."""
        receipts: list[Receipt | Fault] = [
            {"destination": request.fields["destination"]} for request in requests
        ]
        try:
            refused = list(self._outlet(operation).send(_rows(requests)))
        except PenstockError as error:
            self.close()
            return [fault_of(error, "JMS")] * len(requests)
        for row, _, reason in refused:
            receipts[row] = Fault("JMS:REFUSED", reason)
        if any(kind == "DestinationError" for _, kind, _ in refused):
            self.close()  # the outlet would not ask again: a destination that is created is found
        return receipts

    def close(self) -> None:
        """Close the connections."""
        while self._open:
            self._open.popitem()[1].close()

    def _outlet(self, operation: JmsPublish) -> JmsOutlet:
        sink = _sink(operation)
        key = (sink.broker(), sink.destination_kind, sink.message, sink.persistent, sink.priority)
        known = self._open.get(key)
        if known is not None and not known.is_connected():
            known.close()
            known = None
        if known is None:
            known = self._open[key] = sink.outlet()
        return known


def _sink(operation: JmsPublish) -> JmsSink:
    kind = "queue" if operation.queue is not None else "topic"
    options: dict[str, Any] = {kind: _NO_DESTINATION}
    options |= {name: getattr(operation, name) for name in BrokerOptions.model_fields}
    return JmsSink(
        **options,
        message=operation.message,
        persistent=operation.persistent,
        priority=operation.priority,
    )


def _rows(requests: Sequence[PublishRequest]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([_row(request.fields) for request in requests], _ROW)


def _row(fields: Any) -> dict[str, Any]:
    value = fields["value"]
    return {
        **fields,
        "value": value.encode() if isinstance(value, str) else value,
        "properties": [*fields["properties"].items()],
    }
