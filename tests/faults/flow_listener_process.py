"""The process that is killed: a flow that listens, with its engine."""

from __future__ import annotations

import sys

from penstock import Connection, start
from penstock.flows import Flow
from penstock.flows.spark.flow_pipeline import flow_pipeline


def main(brokers: str, name: str, state: str, port: str) -> None:
    flow = Flow(name=name, trigger={"http": {"path": "/in", "port": int(port)}}).then(
        publish={"kafka": {"topic": f"{name}.out", "producer": {"acks": "all"}}}
    )
    with start(flow_pipeline(flow, Connection(brokers=brokers), state=state)) as running:
        print("ready", flush=True)
        running.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
