"""What happens to pipelines in production, to exactly-once sinks all at once: each record is there once.

`make faults` does the same with every exactly-once sink and many more events, and prints the table.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.suite.events import run
from tests.faults.suite.targets import Setting
from tests.faults.suite.verdict import verdicts
from tests.faults.suite.world import World
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection
from penstock.embedded import SchemaRegistry

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
SEED = 13
# `make faults` has all at once, and more of them: upserts, JSON lines, lakes that are compacted.
SINKS = [("files", "delta", "database"), ("files, compacted", "iceberg", "kafka")]
EVENTS = [
    *("zombie", "aimed_kill", "taken_over", "leased_kill", "letters_handled", "aimed_kill"),
    *("taken_over", "state_lost", "aimed_kill"),
    *("twins", "aimed_kill", "group_reset", "aimed_kill", "definition_changed", "aimed_kill"),
]
# On a machine that is slower no event is begun after this; the test would be ended otherwise. The first
# two happen anywhere, and are more for each sink: suspended and fenced, then killed.
SECONDS, FIRST, LEAST = 100.0, 2, 3


@pytest.mark.by_turns
@pytest.mark.parametrize("sinks", SINKS, ids=" and ".join)
def test_each_record_is_in_each_sink_once_whatever_happens_to_the_processes(
    sinks: tuple[str, ...],
    connection: Connection,
    unique: str,
    tmp_path: Path,
    postgres: Postgres,
    schema_registry: SchemaRegistry,
) -> None:
    setting = Setting(connection, unique, tmp_path, postgres.url, PASSWORD, schema_registry.url)
    world = World(setting, sinks)
    trouble, sent = run(world, SEED, EVENTS, print, burst=6, seconds=SECONDS, least=FIRST)
    found = verdicts(world, trouble.tally, trouble.letters, sent)
    assert all(each.is_exact for each in found), f"{found}\n{trouble.story()}"
    assert all(each.records > 0 and each.dead > 0 for each in found)
    assert all(each.happened >= LEAST for each in found)
