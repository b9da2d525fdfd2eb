"""Workers that are killed: seconds until the first batch elsewhere; many deployments: until all run.

make bench ARGS="takeover --rounds 10"
make bench ARGS="fleet"
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from threading import Event, Thread

import yaml
from tests.faults.suite.workers import WorkerProcess

from bench.harness import Result
from penstock import Admin, Connection, Producer
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.errors import ConfigError
from penstock.testing import eventually

DEPLOYMENTS, FLEET = 4, 200
LEASE = 15.0
TOPIC = "takeover"


def run(connection: Connection, _rows: int, rounds: int) -> list[Result]:
    """Kill the worker with most deployments, again and again; print seconds until their next batch."""
    with _store() as (store, folder), _records(connection), _workers(folder, 2) as workers:
        names = [f"takeover-{n}" for n in range(DEPLOYMENTS)]
        _deploy(store, connection, folder, names)
        eventually(lambda: all(store.counters.get(name).batches for name in names), 180)
        seconds: list[float] = []
        for number in range(rounds):
            victim, held = _most_loaded(store, workers)
            at = store.database.time()
            workers[victim].kill()
            began = time.monotonic()
            waiting = set(held)
            while waiting:
                for name in list(waiting):
                    if (store.counters.get(name).last_batch or 0.0) > at + 0.5:
                        waiting.discard(name)
                        seconds.append(time.monotonic() - began)
                time.sleep(0.05)
            workers[victim] = WorkerProcess(
                str(folder / "store"), folder / "keys", folder / "log", LEASE
            )
            eventually(lambda: len(store.workers.all()) == 2, 120)
            print(
                f"  kill {number + 1}: {len(held)} deployments, {max(seconds):.1f} s at most so far"
            )
    print(
        f"takeover after kill -9: median {median(seconds):.1f} s, longest {max(seconds):.1f} s, "
        f"{len(seconds)} deployments in {rounds} kills (two workers, leases of {LEASE:.0f} s)"
    )
    return []


def fleet(connection: Connection, _rows: int, _rounds: int) -> list[Result]:
    """Start many deployments at once on one worker; print how long it takes until all run."""
    with _store() as (store, folder), _topic(connection), _workers(folder, 1):
        eventually(store.workers.all, 120)
        began = time.monotonic()
        names = [f"fleet-{n}" for n in range(FLEET)]
        _deploy(store, connection, folder, names)
        running = 0
        while running < FLEET:
            time.sleep(1.0)
            running = sum(run.state == "RUNNING" for run in store.leases.all())
            if int(time.monotonic() - began) % 20 == 0:
                print(f"  {time.monotonic() - began:.0f} s: {running} run", flush=True)
    print(f"{FLEET} deployments run after {time.monotonic() - began:.0f} s")
    return []


@contextmanager
def _store() -> Iterator[tuple[ControlStore, Path]]:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        place = Path(folder)
        with ControlStore.at(place / "store", place / "keys", LEASE) as store:
            yield store, place


@contextmanager
def _workers(folder: Path, count: int) -> Iterator[list[WorkerProcess]]:
    given = str(folder / "store"), folder / "keys", folder / "log", LEASE
    workers = [WorkerProcess(*given) for _ in range(count)]
    try:
        yield workers
    finally:
        for each in workers:
            if each.alive:
                each.kill()


@contextmanager
def _records(connection: Connection) -> Iterator[None]:
    """Write a record every 50 ms."""
    over = Event()

    def write() -> None:
        with Producer(connection) as producer:
            number = 0
            while not over.wait(0.05):
                number += 1
                producer.produce(TOPIC, None, b'{"n": %d}' % number)

    thread = Thread(target=write)
    with _topic(connection):
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def _topic(connection: Connection) -> Iterator[None]:
    with suppress(ConfigError), Admin(connection) as admin:  # another case has created it
        admin.create_topic(TOPIC, 2)
    yield


def _deploy(store: ControlStore, connection: Connection, folder: Path, names: list[str]) -> None:
    for name in names:
        definition = {
            "name": name,
            "connection": {"bootstrap.servers": connection.brokers},
            "source": {"kafka": {"topics": [TOPIC], "start": "latest"}},
            "decode": {"json": {"schema": "n bigint"}},
            "sink": {"files": {"path": str(folder / "tables" / name)}},
            "delivery": "exactly-once",
            "state": str(folder / "states"),
        }
        text = yaml.safe_dump(definition)
        store.deployments.put(name, Kind.PIPELINE, text, by="the bench")


def _most_loaded(store: ControlStore, workers: list[WorkerProcess]) -> tuple[int, list[str]]:
    """Return the number of the worker that holds most deployments, and which."""
    ids = {row.pid: row.id for row in store.workers.all()}
    held = [
        [run.deployment for run in store.leases.all() if run.worker == ids.get(each.pid)]
        for each in workers
    ]
    chosen = max(range(len(workers)), key=lambda number: len(held[number]))
    return chosen, held[chosen]
