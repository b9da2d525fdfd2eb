"""From topic to topic: how long a record takes in real-time mode, and in small batches, in one run."""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from bench.harness import Result
from penstock import Admin, Broker, Consumer, Pipeline, Producer, start
from penstock.engine import stop_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock import Connection

RATE = 500
WARM_UP, MEASURED = 20.0, 20.0
# A record's value is the moment at which it was sent, in microseconds, and something to be changed.
_STEP = "SELECT key, upper(CAST(value AS STRING)) AS value FROM rows WHERE value <> 'no'"
MODES = ("realtime", "batch")


def run() -> list[Result]:
    """Measure both modes one after the other, twice, and keep the better round of each."""
    best: dict[str, list[float]] = {}
    with Broker() as broker:
        for round_ in range(2):
            for mode in MODES:
                found = _measure(broker.connection, mode, f"{mode}-{round_}")
                if mode not in best or statistics.median(found) < statistics.median(best[mode]):
                    best[mode] = found
        stop_session()
    _show(best)
    ours, other = (statistics.median(best[mode]) for mode in MODES)
    return [Result("topic to topic, median", 1, ours, other, wanted=8.0)]


def _measure(connection: Connection, mode: str, name: str) -> list[float]:
    """Return the seconds that each record took, of those sent after the warm-up."""
    source, target = f"{name}-in", f"{name}-out"
    with Admin(connection) as admin, tempfile.TemporaryDirectory(prefix="penstock-") as state:
        for topic in (source, target):
            admin.create_topic(topic, 1)
        pipeline = Pipeline(
            name=name,
            connection=connection,
            source={"kafka": source},
            steps=[{"sql": _STEP}],
            sink={"kafka": {"topic": target, "key": "key", "value": "value"}},
            latency=mode,
            state=state,
        )
        with start(pipeline), _sending(connection, source):
            took = _received(connection, target)
    print(f"  {name}: median {statistics.median(took) * 1000:,.0f} ms", flush=True)
    return took


@contextmanager
def _sending(connection: Connection, topic: str) -> Iterator[None]:
    done = Event()

    def send() -> None:
        began, sent = time.monotonic(), 0
        with Producer(connection, **{"linger.ms": 0}) as producer:
            while not done.wait(0.002):
                for _ in range(int((time.monotonic() - began) * RATE) - sent):
                    producer.produce(topic, None, f"{time.time():.6f} x")
                    sent += 1

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _received(connection: Connection, topic: str) -> list[float]:
    took: list[float] = []
    with Admin(connection) as admin, Consumer(connection, **{"fetch.wait.max.ms": 5}) as consumer:
        consumer.assign(admin.earliest(admin.partitions([topic])))
        while consumer.poll(60) is None:
            continue
        until = time.time() + WARM_UP + MEASURED
        while time.time() < until:
            for record in consumer.poll_batch(1, 0.1):
                sent = float(record.value.split()[0])
                if sent > until - MEASURED:
                    took.append(time.time() - sent)
    return took


def _show(best: dict[str, list[float]]) -> None:
    table = Table("mode", "records", "p50", "p99", "maximum")
    for mode, took in best.items():
        cuts = statistics.quantiles(took, n=100)
        figures = (cuts[49], cuts[98], max(took))
        table.add_row(mode, f"{len(took):,}", *(f"{seconds * 1000:,.1f} ms" for seconds in figures))
    Console(width=100).print(table)
