"""Messages of RabbitMQ as records, without a server."""

from __future__ import annotations

from penstock.imports.rabbitmq.deliveries import Delivery
from penstock.imports.rabbitmq.message_records import MessageRecords
from penstock.sinks.rabbitmq.amqp_values import write_properties


def test_a_name_with_a_zero_is_not_cut_to_one_of_penstocks() -> None:
    records = MessageRecords("q", "none", 10_000, properties=True, reject=False)
    properties = write_properties({"headers": [("rabbitmq.queue\0", b"other"), ("plain", b"1")]})
    made = records.convert([Delivery(1, b"\0\x02ex\x03a.b", properties, b"value", 5)]).records
    (headers,) = made["headers"].to_pylist()
    assert [(each["key"], each["value"]) for each in headers] == [
        ("rabbitmq.queue\\x00", b"other"),
        ("plain", b"1"),
        ("rabbitmq.exchange", b"ex"),
        ("rabbitmq.routing_key", b"a.b"),
        ("rabbitmq.redelivered", b"false"),
        ("rabbitmq.queue", b"q"),
    ]
