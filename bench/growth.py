"""What grows and what stays: partitions, backlog, size of records, pipelines in one engine; plots."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
import orjson
import psutil
from confluent_kafka import Producer as Client
from rich.console import Console
from rich.table import Table

from bench.data import trade
from bench.harness import OUT
from bench.memory import tree_mib
from penstock import Admin, Broker, Connection

mpl.use("Agg")
from matplotlib import pyplot as plt

DIMENSIONS = ("backlog", "partitions", "size", "pipelines")
PARTITIONS = (1, 4, 16)
BACKLOGS = (1, 10, 100)
SIZES = (100, 1_000, 100_000)
PIPELINES = (1, 10, 50, 200)
# What a backlog of 1x is; a batch takes a quarter of it.
UNIT = 100_000
# What is drained before, so that Java has compiled what is hot and has the memory that it takes.
WARM = 30 * UNIT
# So many records are handed to the client at a time, and may wait in it.
_CHUNK = 10_000
_QUEUED = 300_000
_FILLING = {
    "linger.ms": 50,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 2_000_000,
}
# A short backlog is over in seconds: it is drained so often, and the median counts.
ROUNDS = {1: 3, 10: 3, 100: 1}
# About so many bytes are drained for each size of record.
VOLUME = 100_000_000

Row = dict[str, float]


def run(dimensions: list[str]) -> None:
    """Measure each dimension that is asked for, print a table, draw a plot."""
    with Broker() as broker, tempfile.TemporaryDirectory(prefix="penstock-growth-") as scratch:
        work = _Work(broker.connection, Path(scratch))
        for name in dimensions:
            _report(name, getattr(work, name)())


class _Work:
    def __init__(self, connection: Connection, scratch: Path) -> None:
        self._connection = connection
        self._scratch = scratch
        self._fill("warm", WARM, 4)

    def backlog(self) -> dict[str, Row]:
        return {
            f"{times}x": self._drained(f"backlog-{times}", UNIT * times, 4, rounds=ROUNDS[times])
            for times in BACKLOGS
        }

    def partitions(self) -> dict[str, Row]:
        return {str(n): self._drained(f"partitions-{n}", UNIT * 5, n) for n in PARTITIONS}

    def size(self) -> dict[str, Row]:
        return {
            f"{size:,} B": self._drained(f"size-{size}", max(1000, VOLUME // size), 4, size)
            for size in SIZES
        }

    def pipelines(self) -> dict[str, Row]:
        found = {}
        for count in PIPELINES:
            topics = [f"many-{count}-{n}" for n in range(count)]
            for topic in topics:
                self._fill(topic, 100, 1)
            told, _ = self._child("many", *topics)
            found[str(count)] = {
                "seconds to the first batch of all": told["seconds"],
                "MiB": told["mib"],
                "MiB for each": told["mib"] / count,
                "idle cores": told["idle_cores"],
                "idle ms/s for each": told["idle_cores"] * 1000 / count,
            }
        return found

    def _drained(
        self, topic: str, rows: int, partitions: int, size: int = 0, rounds: int = 1
    ) -> Row:
        self._fill(topic, rows, partitions, size)
        found = []
        for _ in range(rounds):
            told, peak = self._child("drain", str(max(1, min(UNIT, rows) // 4)), "warm", topic)
            each = told["each"] * 1e6
            print(f"  {topic}: {rows:,} records, {each:.2f} µs each, {peak:,.0f} MiB", flush=True)
            found.append({"µs for each record": each, "peak MiB": peak, "records": rows})
        with Admin(self._connection) as admin:
            admin.delete_topic(topic)
        return {key: median(row[key] for row in found) for key in found[0]}

    def _fill(self, topic: str, rows: int, partitions: int, size: int = 0) -> None:
        dice = random.Random(7)
        trades = [{"value": _padded(trade(number, dice), size)} for number in range(1000)]
        with Admin(self._connection) as admin:
            admin.create_topic(topic, partitions)
        producer = Client({**self._connection.librdkafka("producer"), **_FILLING})
        for chunk in range(0, rows, _CHUNK):
            sent = (trades * (_CHUNK // 1000))[: rows - chunk]
            at = chunk // _CHUNK % partitions
            if producer.produce_batch(topic, sent, partition=at) < len(sent):
                raise SystemExit(f"{topic} could not be filled")
            while len(producer) > _QUEUED:
                producer.poll(0.05)
        producer.flush()
        os.sync()  # the disk's work on the records shall not fall into the draining

    def _child(self, kind: str, *rest: str) -> tuple[dict[str, Any], float]:
        """Run one piece in a process of its own; return what it tells, and the peak of its memory."""
        folder = self._scratch / f"{kind}-{time.monotonic_ns()}"
        command = [sys.executable, "-m", "bench.drain", kind, self._connection.brokers, str(folder)]
        process = psutil.Popen([*command, *rest], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, tree_mib(process))
            time.sleep(0.2)
        if process.returncode:
            raise SystemExit(f"{kind} {rest[:3]} failed with exit code {process.returncode}")
        told = process.stdout.read() if process.stdout else b""
        return json.loads(told.splitlines()[-1]), peak


def _padded(record: bytes, size: int) -> bytes:
    missing = size - len(record) - len(b',"pad":""')
    return orjson.dumps({**orjson.loads(record), "pad": "x" * missing}) if missing > 0 else record


def _report(name: str, found: dict[str, Row]) -> None:
    columns = list(next(iter(found.values())))
    table = Table(name, *columns)
    for label, row in found.items():
        table.add_row(label, *(f"{row[column]:,.2f}" for column in columns))
    Console(width=120).print(table)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"growth-{name}.json").write_text(json.dumps(found, indent=2))
    draw(name, found)
    print(f"  plot: {OUT / f'growth-{name}.png'}", flush=True)


def draw(name: str, found: dict[str, Row]) -> None:
    """Draw what was found, a picture for each figure."""
    shown = [column for column in next(iter(found.values())) if column != "records"]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.2 * len(shown), 2.6))
    for axis, column in zip(axes, shown, strict=True):
        axis.bar(list(found), [row[column] for row in found.values()], width=0.5)
        axis.set_title(column)
        axis.set_xlabel(name)
    figure.tight_layout()
    figure.savefig(OUT / f"growth-{name}.png", dpi=80)
