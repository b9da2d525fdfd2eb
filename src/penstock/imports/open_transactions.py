"""Ends transactions of tasks that were killed between the last record and the commit.

No one sees a position after them, of whatever import, until Kafka ends them after two minutes,
or 15 where a database was read.
"""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, TopicPartition

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.imports.positions import SHORT, TOPIC, place_in, transaction_of
from penstock.kafka.handle import Handle
from penstock.kafka.offsets import NO_GROUP
from penstock.kafka.producing.record_transaction import Transaction

log = event_logger(__name__)
_LONGEST = 20.0


def end_open_transactions(connection: Connection, name: str, since: int) -> None:
    """End those transactions of an import that are open at an offset of the positions, or after it.

    Those that are committed already are not changed by it; a task that is alive is fenced.
    """
    for place in _places(connection, name, since):
        log.warning("transaction_ended", pipeline=name, part=place)
        # Made, it has ended every transaction of its name.
        with Transaction(connection, transaction_of(name, place), SHORT):
            continue


def _places(connection: Connection, name: str, since: int) -> set[str]:
    """Return the parts of an import that have positions after an offset, committed or not."""
    handle = Handle(
        connection,
        "consumer",
        group_id=NO_GROUP,
        enable_auto_commit=False,
        enable_partition_eof=True,
        isolation_level="read_uncommitted",
        auto_offset_reset="earliest",
    )
    found: set[str] = set()
    deadline = time.monotonic() + _LONGEST
    with handle.translated("reading positions that are not committed"):
        client = Consumer(handle.settings())
        try:
            client.assign([TopicPartition(TOPIC, 0, since)])
            while time.monotonic() < deadline:
                for message in client.consume(1000, 0.1):
                    error = message.error()
                    if error is None and (place := place_in(message, name)):
                        found.add(place)
                    elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                        return found
        finally:
            client.close()
    return found
