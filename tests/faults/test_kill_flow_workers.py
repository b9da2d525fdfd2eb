"""A deployed flow, from RabbitMQ through a branch into two topics, whose workers are killed with -9.

Nothing is lost; duplicates are allowed (at-least-once) and counted. `PENSTOCK_KILLS=20` is the long form.
"""

from __future__ import annotations

import json
import random
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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


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


def test_no_message_of_a_flow_is_lost_by_kills_of_its_workers(
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
    topics = [f"{unique}.even", f"{unique}.odd"]
    rabbitmq.declare(unique)
    with Admin(connection) as admin:
        for topic in topics:
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
        text = store.secrets.sealed(unique, definition(unique, connection, rabbitmq))
        store.deployments.put(unique, Kind.FLOW, text, by="a test")
        for _ in range(KILLS):
            send(sent)
            until = sent + dice.randrange(1, EACH)
            sent += EACH
            eventually(lambda until=until: len(found()) >= until, timeout=PATIENCE, every=0.2)
            fleet.kill_owner(unique)
        send(sent)
        sent += EACH
        eventually(lambda: len(found()) == sent, timeout=PATIENCE, every=0.5)
        eventually(lambda: rabbitmq.depth(unique) == 0, timeout=60, every=0.5)
    counts = found()

    assert counts.keys() == {*range(sent)}, "nothing is lost, nothing is invented"
    evens = [json.loads(r.value)["n"] % 2 for r in read_all(connection, topics[0])]
    assert not any(evens)
    twice = sum(counts.values()) - len(counts)
    record_property("duplicates", f"{twice} of {sent} after {KILLS} kills")
    print(f"flow: {KILLS} kills, {sent} messages, 0 lost, {twice} twice")
