"""Runs one flow until it is killed: `python -m tests.faults.flow_runner FILE STATE`."""

from __future__ import annotations

import sys

from penstock import start
from penstock.flows.definition.reading import read_flow
from penstock.flows.spark.flow_pipeline import flow_pipeline


def main() -> None:
    file, state = sys.argv[1:]
    with start(flow_pipeline(read_flow(file), state=state)) as running:
        running.wait()


if __name__ == "__main__":
    main()
