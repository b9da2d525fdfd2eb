"""A process that copies one topic to another, exactly once: records and offsets in one transaction.

    python copier.py SETTINGS   as JSON: brokers, name, source, target, batch, hold_at

It tells on its output what it has done, a line for each step. In the transaction with the number
`hold_at` it tells "ready" when everything is on the broker, waits for a line on its input, then commits.
"""

from __future__ import annotations

import json
import sys

from penstock import Connection, Consumer, PenstockError, Producer
from penstock.record import Record


def tell(*words: object) -> None:
    print(*words, flush=True)


def copy(
    consumer: Consumer, producer: Producer, records: list[Record], settings: dict[str, object]
) -> None:
    for record in records:
        producer.produce(str(settings["target"]), record.key, record.value)
    producer.send_offsets_to_transaction(consumer)
    producer.flush()
    if settings["hold_at"] == settings["done"]:
        tell("ready", len(records))
        sys.stdin.readline()


def run(settings: dict[str, object]) -> None:
    connection = Connection.from_config({"bootstrap.servers": settings["brokers"]})
    name = str(settings["name"])
    settings["done"] = 0
    # A member with a name of its own takes its old place at once, instead of when a session has ended.
    group = {"group": name, "group_instance_id": name, "auto_offset_reset": "earliest"}
    with Producer(connection, transactional_id=name) as producer:
        producer.init_transactions()
        with Consumer(connection, **group) as consumer:
            consumer.subscribe(str(settings["source"]))
            while True:
                records = consumer.poll_batch(int(str(settings["batch"])), 0.05)
                if records:
                    with producer.transaction():
                        copy(consumer, producer, records, settings)
                    settings["done"] = int(str(settings["done"])) + 1
                    tell("committed", len(records))


if __name__ == "__main__":
    try:
        run(json.loads(sys.argv[1]))
    except PenstockError as problem:
        tell(type(problem).__name__, problem)
