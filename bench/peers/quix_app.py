"""A Quix Streams application for one measurement; runs in Quix's own environment, which has no Penstock.

Reads its task as JSON from the command line, says "ready", waits for a line, works through its share of
the partitions, and prints when its first record was done and when its last one was safe.
"""

import json
import os
import sys
import threading
import time

from quixstreams import Application
from quixstreams.sinks.community.file.local import LocalFileSink
from quixstreams.sinks.community.postgresql import PostgreSQLSink

COLUMNS = ("id", "symbol", "price", "size", "side")


def row(value):
    return {name: value[name] for name in COLUMNS}


def connect(task, app, records):
    kind = task["sink"]
    if kind == "none":
        return records.apply(row)
    if kind == "kafka":
        return records.apply(row).to_topic(app.topic(task["target"], value_serializer="json"))
    if kind == "postgresql":
        table = PostgreSQLSink(**task["database"], include_metadata=False, schema_auto_update=False)
        return records.apply(row).sink(table)
    return records.apply(row).sink(LocalFileSink(directory=".", format=kind))


class Progress:
    """Stops the application when the last records of its share of the partitions are done."""

    def __init__(self, last, share):
        self.last, self.share = last, share
        self.began = 0.0
        self.done = set()

    def __call__(self, _topic, partition, offset):
        if not self.began:
            self.began = time.time()
        if offset == self.last:
            self.done.add(partition)
            if len(self.done) == self.share:
                self.app.stop()


def end_with_parent():
    sys.stdin.read()
    os._exit(1)


def main():
    task = json.loads(sys.argv[1])
    progress = Progress(task["last_offset"], task["share"])
    app = Application(
        broker_address=task["brokers"],
        consumer_group=task["group"],
        auto_offset_reset="earliest",
        processing_guarantee=task["guarantee"],
        state_dir=f"_state-{os.getpid()}",
        consumer_extra_config={"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 5},
        producer_extra_config={"linger.ms": 50},
        on_message_processed=progress,
        loglevel="WARNING",
    )
    progress.app = app
    connect(task, app, app.dataframe(app.topic(task["topic"], value_deserializer="json")))
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=end_with_parent, daemon=True).start()
    app.run()
    print(json.dumps({"began": progress.began, "ended": time.time()}), flush=True)


main()
