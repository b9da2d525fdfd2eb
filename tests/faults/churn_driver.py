"""The pipeline of the churn test; run as a process of its own, it reads until it is killed."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock import Connection, Pipeline, start


def definition(brokers: str, name: str, folder: Path) -> Pipeline:
    return Pipeline(
        name=name,
        connection=Connection.model_validate({"bootstrap.servers": brokers}),
        source={"kafka": {"pattern": f"{name}-t[0-9]+", "on_data_loss": "skip"}},
        decode={"json": {"schema": "n bigint not null", "metadata": ["topic"]}},
        sink={"files": str(folder / "table")},
        delivery="exactly-once",
        state=str(folder / "state"),
        restart={"wait": "100ms", "longest": "1s"},
    )


if __name__ == "__main__":
    with start(definition(sys.argv[1], sys.argv[2], Path(sys.argv[3]))) as running:
        while not running.wait(0.1):
            print(running.progress().batches, flush=True)
