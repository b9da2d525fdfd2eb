"""Lets Java write its class archives before the tests of a run start.

Without them each start of Spark takes more than twice as much CPU time, and tests start it hundreds of
times. In a checkout that was not run before there are none: they belong to the paths of its jars.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import penstock
from penstock.embedded import Broker
from penstock.engine import stop_session
from penstock.engine.spark_jvm import archive_path
from penstock.testing import fill


def main() -> None:
    if archive_path().exists():
        return
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        fill(broker.connection, "numbers", [{"n": 1}, "not a number"])
        lake = {"warehouse": f"{folder}/lake", "table": "db.numbers"}
        sinks = ({"files": f"{folder}/files"}, {"delta": f"{folder}/delta"}, {"iceberg": lake})
        for number, sink in enumerate(sinks):
            definition = penstock.Pipeline(
                name=f"archive-{number}",
                connection=broker.connection,
                source={"kafka": "numbers"},
                decode={"json": {"schema": "n bigint"}},
                sink=sink,
                delivery="exactly-once",
                state=str(Path(folder) / "state"),
            )
            with penstock.start(definition, once=True) as running:
                running.wait(240)
        stop_session()


if __name__ == "__main__":
    main()
