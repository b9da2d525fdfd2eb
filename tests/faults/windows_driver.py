"""A process that sums trades up by windows until it is killed, or until nothing is left (`once`)."""

from __future__ import annotations

import sys
from typing import Any

from penstock import Pipeline, start


def definition(brokers: str, name: str, topic: str, folder: str) -> Pipeline:
    """Deduplicated trades, summed up by ten seconds and symbol, exactly once."""
    schema = "id bigint, symbol string, size int, time timestamp"
    first: dict[str, Any] = {"deduplicate": {"by": "id", "time": "time", "within": "1h"}}
    windows = {
        "time": "time",
        "window": "10s",
        "slide": "5s",
        "by": "symbol",
        "values": {"n": "count(*)", "total": "sum(size)", "least": "min(id)"},
    }
    return Pipeline(
        name=name,
        connection={"bootstrap.servers": brokers},
        source={"kafka": {"topics": topic, "max_records_per_batch": 400}},
        decode={"json": {"schema": schema}},
        steps=[first, {"aggregate": windows}],
        sink={"files": f"{folder}/{name}"},
        delivery="exactly-once",
        state=f"{folder}/state",
        restart={"limit": 0},
    )


if __name__ == "__main__":
    with start(definition(*sys.argv[1:5])) as running:
        running.wait()
