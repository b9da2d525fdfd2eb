"""From the command to the first row in the table: `penstock run` against the same job started plainly."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.data import SCHEMA, fill
from bench.harness import Result, compare
from penstock.config import Connection
from penstock.embedded import jars

_DEFINITION = """\
name: startup
connection: {{bootstrap.servers: "{brokers}"}}
source: {{kafka: startup}}
decode: {{json: {{schema: "{schema}"}}}}
sink: {{files: "{folder}/table"}}
state: "{folder}/state"
"""

# The same pipeline in a session made as Spark's own guide makes one: no archive, Spark's launcher.
_PLAIN = """\
import sys
from pyspark.sql import SparkSession
SparkSession.builder.master("local[*]").config("spark.jars", sys.argv[2]).getOrCreate()
import penstock
with penstock.start(penstock.read_pipeline(sys.argv[1]), once=True) as running:
    running.wait()
"""


def run(connection: Connection, rounds: int) -> Result:
    fill(connection, "startup", 10_000)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        folder = Path(scratch)
        definition = folder / "startup.yaml"
        definition.write_text(
            _DEFINITION.format(brokers=connection.brokers, schema=SCHEMA, folder=folder)
        )
        plain = folder / "plain.py"
        plain.write_text(_PLAIN)
        listed = ",".join(map(str, jars.fetch("spark-kafka")))
        penstock = Path(sys.executable).with_name("penstock")
        return compare(
            "start-up: command to first row",
            lambda: _to_first_row([str(penstock), "run", "--once", str(definition)], folder),
            lambda: _to_first_row([sys.executable, str(plain), str(definition), listed], folder),
            rows=10_000,
            rounds=rounds,
            wanted=1 / 0.65,
        )


def _to_first_row(command: list[str], folder: Path) -> float:
    """Return when a file of the table is there; the rest of the process does not count."""
    shutil.rmtree(folder / "table", ignore_errors=True)
    shutil.rmtree(folder / "state", ignore_errors=True)
    began = time.monotonic()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        while not list((folder / "table").glob("*.parquet")):
            if process.poll() not in (None, 0):
                raise SystemExit((folder / "output").read_text())
            time.sleep(0.01)
        took = time.monotonic() - began
    finally:
        process.wait()
    return took
