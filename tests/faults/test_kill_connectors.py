"""Workers of source and sink connectors that are killed, suspended and drained: nothing is lost, and each
record is once in every place that promises it.

`PENSTOCK_KILLS=50 python -m pytest tests/faults/test_kill_connectors.py -s` is the long form.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.faults.kills import kills, within_minutes
from tests.faults.suite.connectors import ConnectorWorkers, Growth, Places
from tests.faults.suite.targets import Setting
from tests.faults.suite.workers import EVENTS, LEASE, PATIENCE
from tests.faults.suite.world import World
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection
from penstock.connect.worker_defaults import CONNECT_WORKER
from penstock.control.store import ControlStore
from penstock.testing import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]
SEED = 18
FIRST = ("kill_java", "kill")


def test_each_record_of_connectors_is_there_once_whatever_happens_to_the_workers(
    connection: Connection,
    unique: str,
    tmp_path: Path,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds = kills(len(FIRST))
    dice = random.Random(SEED)
    events = [*FIRST, *(dice.choice(EVENTS) for _ in range(rounds))][:rounds]
    properties = tmp_path / "worker.properties"
    properties.write_text(
        f"bootstrap.servers={connection.brokers}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
    )
    monkeypatch.setenv(CONNECT_WORKER, str(properties))
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path / "states"))
    places = Places(unique, connection, tmp_path / "places", postgres)
    places.prepare()
    world = World(Setting(connection, unique, tmp_path), ())
    with Postgres() as own:  # the store's: the connectors' server goes on
        place = own.url.replace("penstock@", f"penstock:{quote(PASSWORD, safe='')}@", 1)
        keys = tmp_path / "keys"
        with (
            ControlStore.at(place, keys, LEASE) as store,
            ConnectorWorkers(
                places, world, store, (place, keys), seed=SEED, postgres=own
            ) as workers,
        ):
            with Growth(places) as growth:
                workers.deploy()
                workers.until_running()
                # All run and write: what comes next disturbs them at work.
                eventually(lambda: places.has(1), timeout=PATIENCE, every=0.5)
                for event in within_minutes(events):
                    workers.perform(event)
                    # They work again: all records so far are in every place.
                    eventually(partial(places.has, growth.sent), timeout=PATIENCE, every=0.5)
            eventually(lambda: places.has(growth.sent), timeout=2 * PATIENCE, every=1)
            workers.stop()
    expected = Counter(range(growth.sent))
    wrong = {
        name: ((expected - found).most_common(9), (found - expected).most_common(9))
        for name, found in places.exact().items()
        if found != expected
    }
    assert not wrong, f"lost, and doubled: {wrong}"
    assert places.copied() == set(expected)
    print(
        f"{len(workers.takeovers)} events, {growth.sent} records in {len(places.configs())} connectors"
    )
    print(workers.summary())
