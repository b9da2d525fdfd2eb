"""Workers that are killed, suspended and drained, a store that is restarted: each record is there once.

`PENSTOCK_KILLS=50 python -m pytest tests/faults/test_kill_workers.py -s` is the long form. Batches are as
frequent as can be, which takes all processors; `PENSTOCK_EVERY=3` is the option `every` of the pipelines.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.faults.kills import kills, within_minutes
from tests.faults.suite.load import Load
from tests.faults.suite.targets import Setting
from tests.faults.suite.verdict import verdicts
from tests.faults.suite.workers import EVENTS, LEASE, PATIENCE, Workers
from tests.faults.suite.world import World, value
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection
from penstock.control.store import ControlStore
from penstock.embedded import SchemaRegistry
from penstock.testing import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]
SEED = 17
SINKS = ("files", "delta", "iceberg", "database", "database, sqlite", "kafka")
FIRST = ("kill", "suspend", "store_restart")


def test_each_record_is_in_each_sink_once_whatever_happens_to_the_workers(
    connection: Connection,
    unique: str,
    tmp_path: Path,
    postgres: Postgres,
    schema_registry: SchemaRegistry,
) -> None:
    rounds, every = kills(len(FIRST)), float(os.environ.get("PENSTOCK_EVERY", "0"))
    dice = random.Random(SEED)
    events = [*FIRST, *(dice.choice(EVENTS) for _ in range(rounds))][:rounds]
    setting = Setting(connection, unique, tmp_path, postgres.url, PASSWORD, schema_registry.url)
    world = World(setting, SINKS)
    with Postgres() as own:  # the store's: the sinks' server goes on
        place = own.url.replace("penstock@", f"penstock:{quote(PASSWORD, safe='')}@", 1)
        keys = tmp_path / "keys"
        with (
            ControlStore.at(place, keys, LEASE) as store,
            Workers(world, store, (place, keys), seed=SEED, postgres=own, every=every) as workers,
        ):
            with Load(connection, unique, burst=4, values=value) as load:
                workers.deploy()
                workers.until_running()
                for event in within_minutes(events):
                    workers.perform(event)
            eventually(workers.caught_up, timeout=2 * PATIENCE, every=0.5)
            workers.stop()  # which reports what was not yet reported
            counted = {name: store.counters.get(name).records for name in workers.names}
    found = verdicts(world, workers.tally, defaultdict(lambda: defaultdict(list)), load.sent)
    assert all(each.is_exact for each in found), found
    assert counted == dict.fromkeys(workers.names, load.sent)
    print(f"{len(workers.takeovers)} events, {load.sent} records\n{workers.summary()}")
