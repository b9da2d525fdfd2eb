"""A Bytewax dataflow for one measurement; runs in Bytewax's own environment, which has no Penstock.

The task comes as JSON in the environment. Each process writes down when its first record was parsed and
when its last one was.
"""

import json
import os
import time

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition

TASK = json.loads(os.environ["TASK"])


def parse(message):
    trade = json.loads(message.value)
    del trade["venue"]
    return trade


class Counted(StatelessSinkPartition):
    def __init__(self):
        self.began = 0.0
        self.rows = 0

    def write_batch(self, items):
        if not self.began:
            self.began = time.time()
        self.rows += len(items)

    def close(self):
        told = {"began": self.began, "ended": time.time(), "rows": self.rows}
        with open(f"{TASK['folder']}/_bytewax-{os.getpid()}.json", "w") as file:  # noqa: PTH123
            json.dump(told, file)


class Counting(DynamicSink):
    def build(self, _step_id, _worker_index, _worker_count):
        return Counted()


flow = Dataflow("bench")
source = KafkaSource(
    [TASK["brokers"]],
    [TASK["topic"]],
    tail=False,
    batch_size=10_000,
    add_config={"queued.min.messages": "1000000", "fetch.queue.backoff.ms": "5"},
)
records = op.input("records", flow, source)
op.output("counted", op.map("parsed", records, parse), Counting())
