"""Deployed flows whose workers are killed with -9: a queue of RabbitMQ into two topics, and a timer.

Nothing is lost; duplicates of the flows are allowed (at-least-once) and counted, a tick is imported
exactly once. `PENSTOCK_KILLS=20` is the long form.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.faults.kills import kills
from tests.faults.suite.workers import LEASE, PATIENCE, WorkerProcess
from tests.services.rabbitmq import RabbitMq

from penstock import Admin, Connection
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.testing import eventually, read_all

KILLS = kills(2)
EACH = 400

pytestmark = [pytest.mark.slow, pytest.mark.by_turns("kills"), pytest.mark.timeout(1800)]


def definition(name: str, connection: Connection, rabbitmq: RabbitMq) -> str:
    def publish(topic: str) -> dict[str, Any]:
        options = {"topic": f"{name}.{topic}", "producer": {"acks": "all"}}
        return {"publish": {"kafka": options}, "retry": 5}

    # Small transactions and batches, so that a kill finds some of everything under way.
    trigger = {**rabbitmq.options, "queues": name, "poll": 0.2, "max_records": 50}
    way = {"if": "payload.n % 2 = 0", "steps": [publish("even")]}
    given = {
        "name": name,
        "connection": {"addresses": connection.brokers},
        "trigger": {"rabbitmq": trigger},
        "steps": [{"branch": {"when": [way], "otherwise": [publish("odd")]}}],
    }
    return yaml.safe_dump(given)


STEP = 200


def ticking(name: str, connection: Connection) -> str:
    """A flow that writes each tick of a timer with its place in the topic between."""
    payload = {"time": "attribute.timestamp", "offset": "attribute.offset"}
    options = {"topic": f"{name}.out", "producer": {"acks": "all"}}
    given = {
        "name": name,
        "connection": {"addresses": connection.brokers},
        "trigger": {"timer": {"interval": f"{STEP}ms", "missed": "all"}},
        "steps": [{"map": payload}, {"publish": {"kafka": options}, "retry": 5}],
    }
    return yaml.safe_dump(given)


class Fleet:
    """Two workers of one store."""

    def __init__(self, store: ControlStore, place: tuple[str, Path], folder: Path) -> None:
        self.store = store
        self._place, self._folder = place, folder
        self._count = 0
        self.processes = [self._started(), self._started()]

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.processes:
            each.kill()

    def _started(self) -> WorkerProcess:
        self._count += 1
        return WorkerProcess(*self._place, self._folder / f"worker-{self._count}.log")

    def kill_owner(self, name: str) -> None:
        """Kill the worker that runs a deployment, with all its processes; another one replaces it."""
        owner = eventually(lambda: self._owner(name), timeout=PATIENCE)
        owner.kill()
        self.processes = [each for each in self.processes if each is not owner] + [self._started()]

    def _owner(self, name: str) -> WorkerProcess | None:
        run = self.store.leases.get(name)
        pids = {row.id: row.pid for row in self.store.workers.all()}
        wanted = pids.get(run.worker) if run else None
        return next((each for each in self.processes if each.pid == wanted), None)


def test_no_message_and_no_tick_of_a_flow_is_lost_by_kills_of_workers(
    connection: Connection,
    rabbitmq: RabbitMq,
    unique: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Any,
) -> None:
    dice = random.Random(unique)
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path / "states"))
    file, keys = tmp_path / "control.sqlite", tmp_path / "keys"
    topics, timer = [f"{unique}.even", f"{unique}.odd"], f"{unique}-timer"
    rabbitmq.declare(unique)
    with Admin(connection) as admin:
        for topic in (*topics, f"{timer}.out"):
            admin.create_topic(topic, 1)

    def found() -> Counter[int]:
        values = (r.value for topic in topics for r in read_all(connection, topic))
        return Counter(json.loads(value)["n"] for value in values)

    def send(first: int) -> None:
        rabbitmq.publish(unique, [b'{"n": %d}' % n for n in range(first, first + EACH)])

    sent = 0
    with (
        ControlStore.at(file, keys, LEASE) as store,
        Fleet(store, (str(file), keys), tmp_path) as fleet,
    ):
        flows = {
            unique: definition(unique, connection, rabbitmq),
            timer: ticking(timer, connection),
        }
        for name, text in flows.items():
            store.deployments.put(name, Kind.FLOW, store.secrets.sealed(name, text), by="a test")
        for number in range(KILLS):
            send(sent)
            until = sent + dice.randrange(1, EACH)
            sent += EACH
            eventually(lambda until=until: len(found()) >= until, timeout=PATIENCE, every=0.2)
            fleet.kill_owner([unique, timer][number % 2])
        send(sent)
        sent += EACH
        eventually(lambda: len(found()) == sent, timeout=PATIENCE, every=0.5)
        eventually(lambda: rabbitmq.depth(unique) == 0, timeout=60, every=0.5)
        now = time.time() * 1000
        eventually(
            lambda: max(ticks(connection, timer), default=0) > now, timeout=PATIENCE, every=0.5
        )
    counts = found()

    assert counts.keys() == {*range(sent)}, "nothing is lost, nothing is invented"
    evens = [json.loads(r.value)["n"] % 2 for r in read_all(connection, topics[0])]
    assert not any(evens)
    twice = sum(counts.values()) - len(counts)
    record_property("duplicates", f"{twice} of {sent} after {KILLS} kills")
    found_ticks = ticks(connection, timer)
    first, last = min(found_ticks), max(found_ticks)
    assert found_ticks.keys() == {*range(first, last + 1, STEP)}, (
        "no due time is missing, none is added"
    )
    assert {len(offsets) for offsets in found_ticks.values()} == {1}, (
        "each was imported exactly once"
    )
    print(f"flow: {KILLS} kills, {sent} messages, 0 lost, {twice} twice; {len(found_ticks)} ticks")


def ticks(connection: Connection, name: str) -> dict[int, set[int]]:
    """Return the due times that were written, with the offsets that each has in the topic between."""
    found: dict[int, set[int]] = {}
    for record in read_all(connection, f"{name}.out"):
        tick = json.loads(record.value)
        found.setdefault(tick["time"], set()).add(tick["offset"])
    return found
