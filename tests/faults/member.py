"""A process that is a member of a group, to be killed: it tells each record it handled, then commits.

python member.py SETTINGS   as JSON: brokers, topic, and settings of the consumer
"""

from __future__ import annotations

import json
import sys

from penstock import Connection, Consumer


def run(brokers: str, topic: str, **settings: object) -> None:
    connection = Connection.from_config({"bootstrap.servers": brokers})
    with Consumer(connection, group=topic, **settings) as consumer:
        consumer.subscribe(topic)
        while True:
            for record in consumer.poll_batch(10, 0.05):
                print(record.partition, record.offset, flush=True)
                consumer.commit(record)


if __name__ == "__main__":
    run(**json.loads(sys.argv[1]))
