"""The process that is killed: it runs three jobs, or goes on with those that are kept."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from penstock import Table, create_job, resume_jobs
from penstock.jobs import Store

COLUMNS = "n bigint"


def parse(value: str) -> Any:
    return json.loads(value)


def main(place: str, topic: str, brokers: str, folder: str, postgres: str) -> None:
    store = Store(place)
    if not resume_jobs(store):
        database = json.loads(postgres) | {"table": topic}
        tables = {
            "memory": Table(COLUMNS),
            "files": Table(COLUMNS, {"files": f"{folder}/table"}),
            "database": Table(COLUMNS, {"database": database}),
        }
        for kind, table in tables.items():
            create_job(
                topic,
                table,
                parse,
                f"{topic}-{kind}",
                connection={"bootstrap.servers": brokers},
                store=store,
                state=f"{folder}/state",
                queue_depth=5000,
                spark={"memory": "512m"},
            )
    print("running", flush=True)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
